// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/f16w_layer.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/kernels/panel_blocks.h"
#include "drivers/cpu/lowering/channel_split.h"
#include "drivers/cpu/microkernels/portable/im2col.h"
#include "drivers/cpu/microkernels/x86/f32_f16w_gemm.h"
#include "drivers/cpu/weights/released_pages.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

// Bytes of rows and panels of one task, and channels of a pass over them: together they stay in the
// second-level cache.
constexpr size_t kRowBytesPerTask = size_t{1} << 20;
constexpr size_t kPanelBytesPerTask = size_t{512} << 10;
constexpr size_t kChannelsPerPass = 2048;
// Limits the scratch memory: windows overlap, and there may be very many rows.
constexpr size_t kRowBytesPerRound = size_t{8} << 20;
// Fewer tasks than this for a thread balance badly when threads run unevenly.
constexpr size_t kTasksPerThread = 16;
// Bytes of the model whose pages are released at a time.
constexpr size_t kReleasedTogether = size_t{4} << 20;

struct Creation {
  Convolution geometry;
  F16wGemm product;  // without `packed`; its channels are those of a whole window
  size_t rows = 0;
  const char* kind = nullptr;
  // Data of the first channel of this part; read only while it is packed.
  const uint16_t* weights = nullptr;
  const float* bias = nullptr;
  std::span<const uint8_t> released;  // the weights, if their pages can be released
  PackedWeights* store = nullptr;
  WeightPlace place;
  std::shared_ptr<const base::Sha256Digest> packed;
  ValueId source = 0, destination = 0;
  size_t outputOffset = 0;  // of the first column, in elements
};

class HalfLayerKernel final : public Kernel {
 public:
  explicit HalfLayerKernel(const Creation& layer)
      : layer_(layer),
        windows_(layer.geometry, sizeof(float), 0),
        isOverPixels_(layer.geometry.isOverPixels()),
        rowBytes_(layer.product.channels * sizeof(float)),
        rowsPerRound_(std::clamp(kRowBytesPerRound / rowBytes_, halfTileRows(),
                                 std::max(layer.rows, halfTileRows()))) {}

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    if (!isOverPixels_)
      gathered_.resize(threads::threadsOf(pool) * halfTileRows() * layer_.product.channels);
    return isTile() ? 0 : std::min(rowsPerRound_, layer_.rows) * rowBytes_;
  }

  Status setup(std::span<void* const> addresses, void* workspace) override {
    source_ = static_cast<const float*>(addresses[layer_.source]);
    destination_ = static_cast<float*>(addresses[layer_.destination]) + layer_.outputOffset;
    tiles_ = static_cast<float*>(workspace);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    for (size_t row = 0; row < layer_.rows; row += rowsPerRound_)
      computeRows(pool, row, std::min(rowsPerRound_, layer_.rows - row));
    return {};
  }

 private:
  // Whether the source already is the only tile: a single row is read in place.
  bool isTile() const { return layer_.rows == 1 && isOverPixels_; }

  void makeTile(size_t row, size_t count, size_t thread, float* tile) {
    const size_t channels = layer_.product.channels;
    const float* rows = source_ + row * channels;
    if (!isOverPixels_) {
      float* const gathered = gathered_.data() + thread * halfTileRows() * channels;
      windows_.gather(reinterpret_cast<const uint8_t*>(source_), row, row + count,
                      reinterpret_cast<uint8_t*>(gathered));
      rows = gathered;
    }
    makeHalfTile(rows, count, channels, tile);
  }

  void computeRows(threads::ThreadPool* pool, size_t first, size_t rows) {
    const F16wGemm& product = layer_.product;
    const size_t channels = product.channels;
    // Tiles of nearly the same number of rows.
    const size_t tiles = (rows + halfTileRows() - 1) / halfTileRows();
    const auto firstOf = [&](size_t tile) {
      return tile * rows / tiles;
    };
    const auto rowsOf = [&](size_t tile) {
      return firstOf(tile + 1) - firstOf(tile);
    };
    if (!isTile())
      threads::forTasks(pool, tiles, [&](size_t tile, size_t thread) {
        makeTile(first + firstOf(tile), rowsOf(tile), thread, tiles_ + firstOf(tile) * channels);
      });
    const float* const turned = isTile() ? source_ : tiles_;
    const size_t most = std::max<size_t>(kRowBytesPerTask / (rowBytes_ * halfTileRows()), 1);
    const size_t chunks = (tiles + most - 1) / most;
    const size_t threads = threads::threadsOf(pool);
    const size_t panels = product.panels();
    // Panels have to fit into the cache only if several tiles of rows read them.
    const size_t cached = tiles > 1 ? panels * product.panelBytes() / kPanelBytesPerTask : 1;
    const size_t blocks = panelBlocks(panels, cached, chunks, threads, kTasksPerThread);
    const size_t step = tiles == 1 ? channels : kChannelsPerPass;
    threads::forTasks(pool, chunks * blocks, [&](size_t index, size_t) {
      const size_t block = index / chunks;
      const size_t chunk = index % chunks;
      for (size_t channel = 0; channel < channels; channel += step)
        for (size_t tile = chunk * tiles / chunks; tile < (chunk + 1) * tiles / chunks; ++tile)
          multiplyHalves(product, turned + firstOf(tile) * channels, rowsOf(tile), channel,
                         std::min(channel + step, channels), block * panels / blocks,
                         (block + 1) * panels / blocks,
                         destination_ + (first + firstOf(tile)) * product.outputStride);
    });
  }

  const Creation layer_;
  const Im2col windows_;
  const bool isOverPixels_;
  const size_t rowBytes_;
  const size_t rowsPerRound_;
  const float* source_ = nullptr;
  float* destination_ = nullptr;
  float* tiles_ = nullptr;
  std::vector<float> gathered_;  // the windows of a tile, for each thread
};

// Packs panel after panel, and releases the model's pages meanwhile.
void packPanels(const Creation& layer, uint8_t* packed) {
  const F16wGemm& product = layer.product;
  const size_t panelWeights = kHalfColumns * product.channels * sizeof(uint16_t);
  const size_t step = kHalfColumns * std::max<size_t>(kReleasedTogether / panelWeights, 1);
  for (size_t first = 0; first < product.columns; first += step) {
    F16wGemm piece = product;
    piece.columns = std::min(step, product.columns - first);
    packHalves(piece, layer.weights + first * product.channels,
               layer.bias == nullptr ? nullptr : layer.bias + first,
               packed + first / kHalfColumns * product.panelBytes());
    const size_t columnBytes = product.channels * sizeof(uint16_t);
    if (!layer.released.empty())
      releasePages(layer.released.subspan(first * columnBytes, piece.columns * columnBytes));
  }
}

Result<std::unique_ptr<Kernel>> makeKernel(const Creation& creation) {
  Creation layer = creation;
  const F16wGemm& product = creation.product;
  HEARTH_ASSIGN(layer.product.packed,
                layer.store->pack(layer.place, layer.kind, layer.packed.get(),
                                  product.panels() * product.panelBytes(),
                                  [&](uint8_t* bytes) { packPanels(layer, bytes); }));
  return std::make_unique<HalfLayerKernel>(layer);
}

bool typesFit(PlanBuilder* builder, const Convolution& g) {
  const ConvertedConstantRef& converted = builder->constants().converted(g.filter);
  const auto isFloat = [&](uint32_t operand) {
    return builder->operand(operand).type == OperandType::kTensorFloat32;
  };
  return hasHalfProduct() && converted != nullptr && converted->source() && !g.isDepthwise &&
         g.groups == 1 && g.groupInputChannels != 0 && g.groupOutputChannels != 0 &&
         builder->operand(*converted->source()).type == OperandType::kTensorFloat16 &&
         isFloat(g.filter) && isFloat(g.input) && isFloat(g.output) &&
         (g.bias == UINT32_MAX || (builder->constants().isWeight(g.bias) && isFloat(g.bias)));
}

// Whether to keep the weights in 16 bits. Small ones stay in a cache, where float32 products are
// faster: they need no conversion and read rows as they lie. Large ones take half the memory, and
// with few rows half the time, since reading them is what takes it.
bool isWorthHalves(const Convolution& g, size_t rows) {
  constexpr size_t kFewRows = 4;
  constexpr uint64_t kLargeForFewRows = uint64_t{512} << 10;
  constexpr uint64_t kLarge = uint64_t{4} << 20;
  const uint64_t bytes = sizeof(float) * uint64_t{g.kernelHeight} * g.kernelWidth *
                         g.groupInputChannels * g.groupOutputChannels;
  return bytes > (rows <= kFewRows ? kLargeForFewRows : kLarge);
}

}  // namespace

Result<bool> addF16wLayer(PlanBuilder* builder, const Convolution& g, const char* kind) {
  const size_t rows = g.batch * g.outputHeight * g.outputWidth;
  if (!typesFit(builder, g) || !isWorthHalves(g, rows)) return false;
  const uint32_t halves = *builder->constants().converted(g.filter)->source();
  const size_t channels = size_t{g.kernelHeight} * g.kernelWidth * g.groupInputChannels;
  const size_t channelBytes = channels * sizeof(uint16_t);
  // Layers larger than one part are divided: two threads that each pack a part take four times its
  // memory, because the model's bytes are in memory, too.
  const std::vector<ChannelRange> parts =
      channelParts(g.groupOutputChannels, channelBytes, kChannelPart + 1);
  const WeightPlace last =
      WeightPlace::of(builder->currentOperation(), PackedLayout::kHalf, parts.size() - 1);
  const uint8_t* const weights = builder->constants().weightData(halves, last);
  const uint8_t* bias = nullptr;
  if (g.bias != UINT32_MAX) {
    HEARTH_ASSIGN(bias, builder->constants().biasData(g.bias, last));
  }
  const ValueId source = builder->read(g.input);
  const ValueId destination = builder->write(g.output);
  const ops::ActivationRange floats = ops::activationRange(g.activation);
  for (uint32_t part = 0; part < parts.size(); ++part) {
    const ChannelRange range = parts[part];
    Creation c;
    c.geometry = g;
    c.product.channels = channels;
    c.product.columns = range.count;
    c.product.lowest = floats.lowest;
    c.product.highest = floats.highest;
    c.product.outputStride = g.groupOutputChannels;
    c.rows = rows;
    c.kind = kind;
    if (weights != nullptr)
      c.weights = reinterpret_cast<const uint16_t*>(weights + range.first * channelBytes);
    if (bias != nullptr) c.bias = reinterpret_cast<const float*>(bias) + range.first;
    c.store = builder->weights();
    c.place = WeightPlace::of(builder->currentOperation(), PackedLayout::kHalf, part);
    const uint32_t operands[] = {g.filter, g.bias};
    // The element size tells this packing from that of the same layer in float32.
    const uint64_t parameters[] = {sizeof(uint16_t), channels, range.count, range.first};
    c.packed = builder->packingSource(operands, parameters);
    c.source = source;
    c.destination = destination;
    c.outputOffset = range.first;
    Node& node = builder->add("own", {source}, {destination});
    releaseAfterPacking(*builder, &node, halves, range, channelBytes);
    if (!node.packedSources.empty()) c.released = node.packedSources.back();
    node.create = [creation = std::make_shared<const Creation>(std::move(c))] {
      return makeKernel(*creation);
    };
  }
  return true;
}

}  // namespace hearth::cpu
