// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/qs8_depthwise.h"

#include <span>
#include <vector>

#include "drivers/cpu/lowering/convolution_input.h"
#include "drivers/cpu/lowering/depthwise_kernel.h"
#include "drivers/cpu/weights/layer_packing.h"

namespace hearth::cpu {
namespace {

class Qs8DepthwiseKernel final : public DepthwiseKernel<int8_t, Qs8Depthwise> {
 public:
  explicit Qs8DepthwiseKernel(const Qs8Depthwise& layer)
      : DepthwiseKernel(layer, static_cast<int8_t>(layer.inputZero)) {}

 private:
  void compute(size_t line, int8_t* output) const override {
    const Qs8Dwconv& product = layer_.product;
    windows_.forLine(
        source_, line,
        [&](const int8_t* const* columns, size_t x) {
          multiplyDepthwise(product, columns, output + x * product.channels);
        },
        [&](const int8_t* const* columns, size_t x) {
          multiplyDepthwiseTile(product, layer_.geometry.strideWidth, columns,
                                output + x * product.channels);
        });
  }
};

// What packing reads, and the layer.
struct Creation : LayerPacking {
  Qs8Depthwise layer;
  const uint8_t* filter = nullptr;
  const uint8_t* bias = nullptr;
  float inputScale = 0, filterScale = 0, outputScale = 0;
  std::span<const float> filterScales;  // by channel, in the model; empty: filterScale for all
};

std::vector<float> factorsOf(const Creation& c) {
  // Computed in XNNPACK's order, so that results are equal to XNNPACK's.
  std::vector<float> factors(c.layer.product.channels);
  for (size_t channel = 0; channel < factors.size(); ++channel) {
    const float scale = c.filterScales.empty() ? c.filterScale : c.filterScales[channel];
    factors[channel] = c.inputScale * scale / c.outputScale;
  }
  return factors;
}

Result<std::unique_ptr<Kernel>> makeKernel(const Creation& c) {
  Qs8Depthwise layer = c.layer;
  HEARTH_ASSIGN(layer.product.packed,
                c.weights->pack(c.place, "DEPTHWISE_CONV_2D", c.packed.get(),
                                depthwisePackedBytes(layer.product), [&](uint8_t* data) {
                                  packDepthwise(layer.product,
                                                reinterpret_cast<const int8_t*>(c.filter),
                                                reinterpret_cast<const int32_t*>(c.bias),
                                                factorsOf(c).data(), layer.inputZero, data);
                                }));
  return makeQs8DepthwiseKernel(layer);
}

}  // namespace

std::unique_ptr<Kernel> makeQs8DepthwiseKernel(const Qs8Depthwise& layer) {
  return std::make_unique<Qs8DepthwiseKernel>(layer);
}

Result<bool> addQs8Depthwise(PlanBuilder* builder, const Convolution& convolution) {
  Convolution g = convolution;
  const graph::Operand& input = builder->operand(g.input);
  const graph::Operand& filter = builder->operand(g.filter);
  const graph::Operand& output = builder->operand(g.output);
  if (input.type != graph::OperandType::kTensorQuant8AsymmSigned || !g.isDepthwise ||
      g.groupInputChannels != 1 || g.groupOutputChannels != 1 ||
      !hasDepthwiseProduct(g.kernelHeight, g.kernelWidth))
    return false;
  if (const auto view = builder->paddedView(g.input)) applyPaddedView(*view, &g);
  auto creation = std::make_shared<Creation>();
  Creation& c = *creation;
  c.layer.geometry = g;
  Qs8Dwconv& product = c.layer.product;
  product.kernelHeight = g.kernelHeight;
  product.kernelWidth = g.kernelWidth;
  product.channels = g.groups;
  product.outputZero = output.zeroPoint;
  const ops::QuantizedRange range = ops::quantizedActivationRange(g.activation, output);
  product.lowest = range.lowest;
  product.highest = range.highest;
  c.layer.inputZero = input.zeroPoint;
  c.inputScale = input.scale;
  c.filterScale = filter.scale;
  c.outputScale = output.scale;
  if (filter.type == graph::OperandType::kTensorQuant8SymmPerChannel)
    c.filterScales = filter.perChannel.scales;
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
