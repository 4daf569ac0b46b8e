// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/half_fully_connected.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "drivers/cpu/channel_parts.h"
#include "drivers/cpu/half_product.h"
#include "drivers/cpu/kernel.h"
#include "threads/parallel_ranges.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

// Rows and panels of one task, and channels of a pass over them: together they stay in the
// second-level cache.
constexpr size_t kRowBytesPerTask = size_t{1} << 20;
constexpr size_t kPanelBytesPerTask = size_t{512} << 10;
constexpr size_t kChannelsPerPass = 2048;
// Scratch memory, of which a hostile model may want any amount.
constexpr size_t kRowBytesPerRound = size_t{32} << 20;
// Fewer tasks than this for a thread balance badly when threads run unevenly.
constexpr size_t kTasksPerThread = 16;

struct Creation {
  HalfProduct product;  // without `packed`
  size_t rows = 0;
  // Of the first of the channels; read only while they are packed.
  const uint16_t* weights = nullptr;
  const float* bias = nullptr;
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
        rowBytes_(layer.product.channels * sizeof(float)),
        rowsPerRound_(std::clamp(kRowBytesPerRound / rowBytes_, halfTileRows(),
                                 std::max(layer.rows, halfTileRows()))) {}

  Result<size_t> reshape(threads::ThreadPool*) override {
    return layer_.rows == 1 ? 0 : std::min(rowsPerRound_, layer_.rows) * rowBytes_;
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
  void computeRows(threads::ThreadPool* pool, size_t first, size_t rows) const {
    const HalfProduct& product = layer_.product;
    const size_t channels = product.channels;
    const float* const given = source_ + first * channels;
    // Tiles of nearly the same number of rows.
    const size_t tiles = (rows + halfTileRows() - 1) / halfTileRows();
    const auto firstOf = [&](size_t tile) {
      return tile * rows / tiles;
    };
    const auto rowsOf = [&](size_t tile) {
      return firstOf(tile + 1) - firstOf(tile);
    };
    if (layer_.rows != 1)
      threads::forRanges(pool, tiles, threads::grainOf(halfTileRows() * channels),
                         [&](uint64_t begin, uint64_t end) {
                           for (uint64_t tile = begin; tile < end; ++tile)
                             makeHalfTile(given + firstOf(tile) * channels, rowsOf(tile), channels,
                                          tiles_ + firstOf(tile) * channels);
                         });
    const float* const turned = layer_.rows == 1 ? given : tiles_;
    const size_t most = std::max<size_t>(kRowBytesPerTask / (rowBytes_ * halfTileRows()), 1);
    const size_t chunks = (tiles + most - 1) / most;
    const size_t threads = threads::threadsOf(pool);
    const size_t panels = product.panels();
    size_t blocks = 1;
    // Weights that only one tile of rows reads need no cache.
    if (tiles > 1) blocks = std::max(blocks, panels * product.panelBytes() / kPanelBytesPerTask);
    if (threads > 1) blocks = std::max(blocks, (threads * kTasksPerThread + chunks - 1) / chunks);
    blocks = std::min(blocks, panels);
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
  const size_t rowBytes_;
  const size_t rowsPerRound_;
  const float* source_ = nullptr;
  float* destination_ = nullptr;
  float* tiles_ = nullptr;
};

Result<std::unique_ptr<Kernel>> makeKernel(const Creation& creation) {
  Creation layer = creation;
  const HalfProduct& product = creation.product;
  HEARTH_ASSIGN(layer.product.packed,
                layer.store->pack(layer.place, "FULLY_CONNECTED", layer.packed.get(),
                                  product.panels() * product.panelBytes(), [&](uint8_t* bytes) {
                                    packHalves(product, layer.weights, layer.bias, bytes);
                                  }));
  return std::make_unique<HalfLayerKernel>(layer);
}

bool typesFit(PlanBuilder* builder, const FullyConnected& layer) {
  const ConvertedConstantRef& converted = builder->converted(layer.filter);
  return hasHalfProduct() && converted != nullptr && layer.inputChannels != 0 &&
         layer.outputChannels != 0 &&
         builder->operand(converted->source()).type == OperandType::kTensorFloat16 &&
         builder->operand(layer.filter).type == OperandType::kTensorFloat32 &&
         builder->operand(layer.input).type == OperandType::kTensorFloat32 &&
         builder->operand(layer.output).type == OperandType::kTensorFloat32 &&
         (layer.bias == UINT32_MAX ||
          (builder->isWeight(layer.bias) &&
           builder->operand(layer.bias).type == OperandType::kTensorFloat32));
}

}  // namespace

Result<bool> addHalfFullyConnected(PlanBuilder* builder, const FullyConnected& layer) {
  if (!typesFit(builder, layer)) return false;
  const uint32_t halves = builder->converted(layer.filter)->source();
  const size_t channelBytes = layer.inputChannels * sizeof(uint16_t);
  const std::vector<ChannelRange> parts = channelParts(layer.outputChannels, channelBytes);
  const WeightPlace last = {builder->currentOperation(), static_cast<uint32_t>(parts.size() - 1)};
  const uint8_t* const weights = builder->weightData(halves, last);
  const uint8_t* bias = nullptr;
  if (layer.bias != UINT32_MAX) {
    HEARTH_ASSIGN(bias, builder->biasData(layer.bias, last));
  }
  const ValueId source = builder->read(layer.input);
  const ValueId destination = builder->write(layer.output);
  const ops::ActivationRange floats = ops::activationRange(layer.activation);
  for (uint32_t part = 0; part < parts.size(); ++part) {
    const ChannelRange channels = parts[part];
    Creation c;
    c.product.channels = layer.inputChannels;
    c.product.columns = channels.count;
    c.product.lowest = floats.lowest;
    c.product.highest = floats.highest;
    c.product.outputStride = layer.outputChannels;
    c.rows = layer.rows;
    if (weights != nullptr)
      c.weights = reinterpret_cast<const uint16_t*>(weights + channels.first * channelBytes);
    if (bias != nullptr) c.bias = reinterpret_cast<const float*>(bias) + channels.first;
    c.store = builder->weights();
    c.place = {builder->currentOperation(), part};
    const uint32_t operands[] = {layer.filter, layer.bias};
    // Its width tells this packing from that of the same layer in float32.
    const uint64_t parameters[] = {sizeof(uint16_t), layer.inputChannels, channels.count,
                                   channels.first};
    c.packed = builder->packingSource(operands, parameters);
    c.source = source;
    c.destination = destination;
    c.outputOffset = channels.first;
    Node& node = builder->add("own", {source}, {destination});
    releaseAfterPacking(*builder, &node, halves, channels, channelBytes);
    node.create = [creation = std::make_shared<const Creation>(std::move(c))] {
      return makeKernel(*creation);
    };
  }
  return true;
}

}  // namespace hearth::cpu
