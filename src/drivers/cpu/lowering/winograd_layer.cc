// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/winograd_layer.h"

#include <array>
#include <utility>
#include <vector>

#include "drivers/cpu/kernels/qs8_tasks.h"
#include "drivers/cpu/lowering/channel_parts.h"
#include "drivers/cpu/microkernels/avx2_gemm.h"
#include "drivers/cpu/microkernels/vnni_gemm.h"
#include "drivers/cpu/weights/layer_packing.h"
#include "ops/quantization.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

constexpr size_t kOutputs = kWinogradSide * kWinogradSide;  // of a tile

size_t tilesOf(size_t outputs) {
  return (outputs + kWinogradSide - 1) / kWinogradSide;
}

// Its rows are tiles. The scratch memory of a task has the transformed inputs, then what the
// product needs, then where the outputs lie.
class WinogradLayerKernel final : public Qs8TaskKernel<WinogradLayer> {
 public:
  explicit WinogradLayerKernel(const WinogradLayer& layer)
      : Qs8TaskKernel(layer),
        padding_(layer.product.channels, static_cast<uint8_t>(layer.inputZero)),
        lines_(tilesOf(layer.geometry.outputHeight)),
        tilesPerLine_(tilesOf(layer.geometry.outputWidth)),
        transformedBytes_(kWinogradPoints * layer.product.channels * sizeof(int16_t)) {}

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    return tasks_.divide(threads::threadsOf(pool), layer_.geometry.batch * lines_ * tilesPerLine_,
                         transformedBytes_ + kOutputs * sizeof(uint8_t*), avx2WinogradScratch());
  }

 private:
  using Inputs = std::array<const uint8_t*, kWinogradPoints>;

  void compute(size_t first, size_t last, size_t firstPanel, size_t lastPanel,
               uint8_t* scratch) const override {
    const size_t count = last - first;
    auto* const transformed = reinterpret_cast<int16_t*>(scratch);
    uint8_t* const sums = scratch + count * transformedBytes_;
    auto** const outputs = reinterpret_cast<uint8_t**>(sums + avx2WinogradScratch());
    Inputs inputs;
    for (size_t i = 0; i < count; ++i) {
      findTile(first + i, &inputs, outputs + i * kOutputs);
      transformAvx2Winograd(layer_.product, layer_.inputZero, inputs.data(), i, count, transformed);
    }
    multiplyAvx2Winograd(layer_.product, transformed, count, firstPanel, lastPanel, outputs, sums);
  }

  // Finds the inputs under a tile and its outputs.
  void findTile(size_t tile, Inputs* inputs, uint8_t** outputs) const {
    const Convolution& g = layer_.geometry;
    const size_t image = tile / (lines_ * tilesPerLine_);
    const size_t line = tile / tilesPerLine_ % lines_ * kWinogradSide;
    const size_t column = tile % tilesPerLine_ * kWinogradSide;
    const auto* const source = reinterpret_cast<const uint8_t*>(source_) +
                               image * g.inputHeight * g.inputWidth * layer_.product.channels;
    for (size_t y = 0; y < kWinogradWindow; ++y)
      for (size_t x = 0; x < kWinogradWindow; ++x) {
        // Before the first row or column these numbers wrap around.
        const size_t inputY = line + y - g.top;
        const size_t inputX = column + x - g.left;
        (*inputs)[y * kWinogradWindow + x] =
            inputY < g.inputHeight && inputX < g.inputWidth
                ? source + (inputY * g.inputWidth + inputX) * layer_.product.channels
                : padding_.data();
      }
    for (size_t y = 0; y < kWinogradSide; ++y)
      for (size_t x = 0; x < kWinogradSide; ++x)
        outputs[y * kWinogradSide + x] =
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

// What packing reads, and the layer.
struct Creation : LayerPacking {
  WinogradLayer layer;
  const uint8_t* filter = nullptr;
  int32_t filterZero = 0;
  const uint8_t* bias = nullptr;
  std::vector<float> factors;
};

Result<std::unique_ptr<Kernel>> makeKernel(const Creation& c) {
  WinogradLayer layer = c.layer;
  HEARTH_ASSIGN(layer.product.packed,
                c.weights->pack(c.place, "CONV_2D", c.packed.get(),
                                avx2WinogradBytes(layer.product), [&](uint8_t* data) {
                                  packAvx2Winograd(layer.product, c.filter, c.filterZero,
                                                   reinterpret_cast<const int32_t*>(c.bias),
                                                   c.factors.data(), data);
                                }));
  return makeWinogradLayerKernel(layer);
}

// Whether this product is faster than Avx2Gemm.
bool isFaster(const Convolution& g) {
  // Its weights take three times as much memory, and few tiles do not make up for reading them.
  constexpr size_t kFewestTiles = 32;
  constexpr size_t kFewestChannels = 32;
  return !hasVnniGemm() && !hasAvxVnni() && g.groupInputChannels >= kFewestChannels &&
         g.groupOutputChannels >= kFewestChannels &&
         g.batch * tilesOf(g.outputHeight) * tilesOf(g.outputWidth) >= kFewestTiles;
}

}  // namespace

std::unique_ptr<Kernel> makeWinogradLayerKernel(const WinogradLayer& layer) {
  return std::make_unique<WinogradLayerKernel>(layer);
}

Result<bool> addWinogradLayer(PlanBuilder* builder, const Convolution& g) {
  const graph::Operand& input = builder->operand(g.input);
  const graph::Operand& filter = builder->operand(g.filter);
  const graph::Operand& output = builder->operand(g.output);
  const bool isSigned = input.type == OperandType::kTensorQuant8AsymmSigned;
  if ((!isSigned && input.type != OperandType::kTensorQuant8Asymm) || g.isDepthwise ||
      g.groups != 1 || g.kernelHeight != 3 || g.kernelWidth != 3 || g.strideHeight != 1 ||
      g.strideWidth != 1 || g.dilationHeight != 1 || g.dilationWidth != 1 ||
      !hasAvx2Winograd(g.groupInputChannels) || !isFaster(g) ||
      builder->constants().converted(g.filter) != nullptr)
    return false;
  auto creation = std::make_shared<Creation>();
  Creation& c = *creation;
  c.layer.geometry = g;
  Avx2Winograd& product = c.layer.product;
  product.channels = g.groupInputChannels;
  product.columns = g.groupOutputChannels;
  product.isSigned = isSigned;
  c.layer.inputZero = input.zeroPoint;
  product.outputZero = output.zeroPoint;
  const ops::QuantizedRange range = ops::quantizedActivationRange(g.activation, output);
  product.lowest = range.lowest;
  product.highest = range.highest;
  const std::shared_ptr<const float> scales = scalesFrom(filter, product.columns);
  // Computed in XNNPACK's order, so that results are equal to XNNPACK's.
  for (size_t i = 0; i < product.columns; ++i)
    c.factors.push_back(input.scale * scales.get()[i] / output.scale);
  c.place = {builder->currentOperation(), 0};
  c.filter = builder->constants().weightData(g.filter, c.place);
  c.filterZero = isSigned ? 0 : filter.zeroPoint;
  if (g.bias != UINT32_MAX) {
    HEARTH_ASSIGN(c.bias, builder->constants().biasData(g.bias, c.place));
  }
  const uint32_t operands[] = {g.input, g.filter, g.bias, g.output};
  // The first number tells this packing from those of other kernels.
  const uint64_t parameters[] = {kWinogradPoints, product.channels, product.columns};
  c.packed = builder->packingSource(operands, parameters);
  c.weights = builder->weights();
  c.layer.source = builder->read(g.input);
  c.layer.destination = builder->write(g.output);
  Node& node = builder->add("own", {c.layer.source}, {c.layer.destination});
  builder->constants().releaseAfterPacking(&node, g.filter);
  node.create = [creation] {
    return makeKernel(*creation);
  };
  return true;
}

}  // namespace hearth::cpu
