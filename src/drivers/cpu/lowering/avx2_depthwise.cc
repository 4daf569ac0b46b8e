// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/avx2_depthwise.h"

#include <vector>

#include "drivers/cpu/lowering/channel_parts.h"
#include "drivers/cpu/lowering/convolution_input.h"
#include "drivers/cpu/lowering/depthwise_kernel.h"
#include "drivers/cpu/microkernels/vnni_gemm.h"
#include "drivers/cpu/weights/layer_packing.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

class Avx2DepthwiseKernel final : public DepthwiseKernel<uint8_t, Avx2Depthwise> {
 public:
  explicit Avx2DepthwiseKernel(const Avx2Depthwise& layer)
      : DepthwiseKernel(layer, static_cast<uint8_t>(layer.inputZero)) {}

 private:
  void compute(size_t line, uint8_t* output) const override {
    const Avx2Dwconv& product = layer_.product;
    windows_.forLine(
        source_, line,
        [&](const uint8_t* const* columns, size_t x) {
          multiplyAvx2Dwconv(product, columns, output + x * product.channels);
        },
        [&](const uint8_t* const* columns, size_t x) {
          multiplyAvx2DwconvTile(product, layer_.geometry.strideWidth, columns,
                                 output + x * product.channels);
        });
  }
};

// What packing reads, and the layer.
struct Creation : LayerPacking {
  Avx2Depthwise layer;
  const uint8_t* filter = nullptr;
  const uint8_t* bias = nullptr;
  std::vector<float> factors;
};

Result<std::unique_ptr<Kernel>> makeKernel(const Creation& c) {
  Avx2Depthwise layer = c.layer;
  HEARTH_ASSIGN(layer.product.packed,
                c.weights->pack(c.place, "DEPTHWISE_CONV_2D", c.packed.get(),
                                avx2DwconvBytes(layer.product), [&](uint8_t* data) {
                                  packAvx2Dwconv(layer.product, c.filter,
                                                 reinterpret_cast<const int32_t*>(c.bias),
                                                 c.factors.data(), layer.inputZero, data);
                                }));
  return makeAvx2DepthwiseKernel(layer);
}

}  // namespace

std::unique_ptr<Kernel> makeAvx2DepthwiseKernel(const Avx2Depthwise& layer) {
  return std::make_unique<Avx2DepthwiseKernel>(layer);
}

Result<bool> addAvx2Depthwise(PlanBuilder* builder, const Convolution& convolution) {
  Convolution g = convolution;
  const graph::Operand& input = builder->operand(g.input);
  const graph::Operand& filter = builder->operand(g.filter);
  const graph::Operand& output = builder->operand(g.output);
  const bool isSigned = input.type == OperandType::kTensorQuant8AsymmSigned;
  if ((!isSigned && input.type != OperandType::kTensorQuant8Asymm) || (isSigned && hasVnniGemm()) ||
      !g.isDepthwise || g.groupInputChannels != 1 || g.groupOutputChannels != 1 ||
      !hasAvx2Dwconv(g.kernelHeight, g.kernelWidth))
    return false;
  if (const auto view = builder->paddedView(g.input)) applyPaddedView(*view, &g);
  auto creation = std::make_shared<Creation>();
  Creation& c = *creation;
  c.layer.geometry = g;
  Avx2Dwconv& product = c.layer.product;
  product.kernelHeight = g.kernelHeight;
  product.kernelWidth = g.kernelWidth;
  product.channels = g.groups;
  product.isSigned = isSigned;
  product.weightZero = isSigned ? 0 : filter.zeroPoint;
  product.outputZero = output.zeroPoint;
  const ops::QuantizedRange range = ops::quantizedActivationRange(g.activation, output);
  product.lowest = range.lowest;
  product.highest = range.highest;
  c.layer.inputZero = input.zeroPoint;
  const std::shared_ptr<const float> scales = scalesFrom(filter, g.groups);
  // Computed in XNNPACK's order, so that results are equal to XNNPACK's.
  for (size_t i = 0; i < g.groups; ++i)
    c.factors.push_back(input.scale * scales.get()[i] / output.scale);
  c.place = {builder->currentOperation(), 0};
  c.filter = builder->constants().weightData(g.filter, c.place);
  if (g.bias != UINT32_MAX) {
    HEARTH_ASSIGN(c.bias, builder->constants().biasData(g.bias, c.place));
  }
  const uint32_t operands[] = {g.input, g.filter, g.bias, g.output};
  const uint64_t parameters[] = {kDepthwiseTile, g.kernelHeight, g.kernelWidth, g.groups};
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
