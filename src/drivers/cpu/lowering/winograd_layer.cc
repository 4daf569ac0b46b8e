// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/winograd_layer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "drivers/cpu/kernels/byte_tasks.h"
#include "drivers/cpu/lowering/byte_layer.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_gemm.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

// Tiles with so many outputs in a row that cover `outputs`.
size_t tilesOf(size_t outputs, size_t side) {
  return (outputs + side - 1) / side;
}

// Its rows are tiles. The scratch memory of a task has the transformed inputs, then what the
// product needs, then where the outputs lie.
class WinogradLayerKernel final : public ByteTaskKernel<WinogradLayer> {
 public:
  explicit WinogradLayerKernel(const WinogradLayer& layer)
      : ByteTaskKernel(layer),
        padding_(layer.product.channels, static_cast<uint8_t>(layer.inputZero)),
        lines_(tilesOf(layer.geometry.outputHeight, layer.product.side)),
        tilesPerLine_(tilesOf(layer.geometry.outputWidth, layer.product.side)),
        transformedBytes_(layer.product.points() * layer.product.channels * sizeof(int16_t)) {}

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    return tasks_.divide(threads::threadsOf(pool), layer_.geometry.batch * lines_ * tilesPerLine_,
                         transformedBytes_ + layer_.product.outputs() * sizeof(uint8_t*),
                         avx2WinogradScratch(layer_.product), scratchPerTask());
  }

 private:
  // Each task reads all weights, which may be larger than the second-level cache, and should have
  // its tiles there.
  size_t scratchPerTask() const {
    constexpr size_t kLeast = size_t{100} << 10;
    constexpr size_t kMost = size_t{512} << 10;
    return std::clamp(avx2WinogradBytes(layer_.product) / 2, kLeast, kMost);
  }

  using Inputs = std::array<const uint8_t*, kWinogradMostPoints>;

  void compute(size_t first, size_t last, size_t firstPanel, size_t lastPanel,
               uint8_t* scratch) const override {
    const size_t count = last - first;
    auto* const transformed = reinterpret_cast<int16_t*>(scratch);
    uint8_t* const sums = scratch + count * transformedBytes_;
    auto** const outputs = reinterpret_cast<uint8_t**>(sums + avx2WinogradScratch(layer_.product));
    Inputs inputs;
    for (size_t i = 0; i < count; ++i) {
      findTile(first + i, &inputs, outputs + i * layer_.product.outputs());
      transformAvx2Winograd(layer_.product, layer_.inputZero, inputs.data(), i, count, transformed);
    }
    multiplyAvx2Winograd(layer_.product, transformed, count, firstPanel, lastPanel, outputs, sums);
  }

  // Finds the inputs under a tile and its outputs.
  void findTile(size_t tile, Inputs* inputs, uint8_t** outputs) const {
    const Convolution& g = layer_.geometry;
    const size_t side = layer_.product.side;
    const size_t window = layer_.product.window();
    const size_t image = tile / (lines_ * tilesPerLine_);
    const size_t line = tile / tilesPerLine_ % lines_ * side;
    const size_t column = tile % tilesPerLine_ * side;
    const auto* const source = reinterpret_cast<const uint8_t*>(source_) +
                               image * g.inputHeight * g.inputWidth * layer_.product.channels;
    for (size_t y = 0; y < window; ++y)
      for (size_t x = 0; x < window; ++x) {
        // Before the first row or column these numbers wrap around.
        const size_t inputY = line + y - g.top;
        const size_t inputX = column + x - g.left;
        (*inputs)[y * window + x] =
            inputY < g.inputHeight && inputX < g.inputWidth
                ? source + (inputY * g.inputWidth + inputX) * layer_.product.channels
                : padding_.data();
      }
    for (size_t y = 0; y < side; ++y)
      for (size_t x = 0; x < side; ++x)
        outputs[y * side + x] =
            line + y < g.outputHeight && column + x < g.outputWidth
                ? reinterpret_cast<uint8_t*>(destination_) +
                      ((image * g.outputHeight + line + y) * g.outputWidth + column + x) *
                          layer_.product.columns
                : nullptr;
  }

  const std::vector<uint8_t> padding_;
  const size_t lines_, tilesPerLine_;
  const size_t transformedBytes_;  // of a tile
};

// Products at the points of all tiles with this side.
uint64_t productsOf(const Convolution& g, size_t side) {
  Avx2Winograd product;
  product.side = side;
  return product.points() * g.batch * tilesOf(g.outputHeight, side) * tilesOf(g.outputWidth, side);
}

// The side of tiles with which this product is fastest; nothing where Avx2Gemm is faster.
std::optional<size_t> fastestSide(const Convolution& g, bool isSigned) {
  // The weights take three times as much memory or eight times, and few tiles do not make up for
  // reading them.
  constexpr size_t kFewestTiles = 32;
  constexpr size_t kFewestChannels = 32;
  if (hasAvx512Vnni() || hasAvxVnni() || g.groupInputChannels < kFewestChannels ||
      g.groupOutputChannels < kFewestChannels)
    return std::nullopt;
  const auto isPossible = [&](size_t side) {
    return hasAvx2Winograd(side, g.groupInputChannels, isSigned) &&
           g.batch * tilesOf(g.outputHeight, side) * tilesOf(g.outputWidth, side) >= kFewestTiles;
  };
  // At the edges of an image parts of the larger tiles may be of no use.
  if (isPossible(4) && 4 * productsOf(g, 4) <= 3 * productsOf(g, 2)) return 4;
  if (isPossible(2)) return 2;
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Kernel> makeWinogradLayerKernel(const WinogradLayer& layer) {
  return std::make_unique<WinogradLayerKernel>(layer);
}

Result<bool> addWinogradLayer(PlanBuilder* builder, const Convolution& g) {
  const OperandType type = builder->operand(g.input).type;
  const bool isSigned = type == OperandType::kTensorQuant8AsymmSigned;
  if ((!isSigned && type != OperandType::kTensorQuant8Asymm) || g.isDepthwise || g.groups != 1 ||
      g.kernelHeight != 3 || g.kernelWidth != 3 || g.strideHeight != 1 || g.strideWidth != 1 ||
      g.dilationHeight != 1 || g.dilationWidth != 1 ||
      builder->constants().converted(g.filter) != nullptr)
    return false;
  const std::optional<size_t> side = fastestSide(g, isSigned);
  if (!side) return false;
  WinogradLayer layer;
  layer.geometry = g;
  layer.product.side = *side;
  layer.product.channels = g.groupInputChannels;
  layer.product.columns = g.groupOutputChannels;
  layer.product.isSigned = isSigned;
  // The first number tells this packing from those of other kernels.
  const uint64_t numbers[] = {layer.product.points(), g.groupInputChannels, g.groupOutputChannels};
  const PackedLayout layout = *side == 2 ? PackedLayout::kWinograd2 : PackedLayout::kWinograd4;
  HEARTH_TRY(addByteLayer(
      builder, layer, layout, numbers, "CONV_2D", avx2WinogradBytes,
      [](const ByteLayer<WinogradLayer>& c, uint8_t* bytes) {
        packAvx2Winograd(c.layer.product, c.filter, c.filterZero, c.layer.inputZero, c.bias,
                         c.factors(c.layer.product.columns).data(), bytes);
      },
      makeWinogradLayerKernel));
  return true;
}

}  // namespace hearth::cpu
