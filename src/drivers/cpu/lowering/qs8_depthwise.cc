// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/qs8_depthwise.h"

#include "drivers/cpu/lowering/byte_layer.h"
#include "drivers/cpu/lowering/convolution_input.h"
#include "drivers/cpu/lowering/depthwise_kernel.h"

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
        [&](const int8_t* const* columns, size_t x, size_t step) {
          multiplyDepthwiseTile(product, layer_.geometry.strideWidth, columns,
                                output + x * product.channels, step);
        });
  }
};

}  // namespace

std::unique_ptr<Kernel> makeQs8DepthwiseKernel(const Qs8Depthwise& layer) {
  return std::make_unique<Qs8DepthwiseKernel>(layer);
}

Result<bool> addQs8Depthwise(PlanBuilder* builder, const Convolution& convolution) {
  Convolution g = convolution;
  if (builder->operand(g.input).type != graph::OperandType::kTensorQuant8AsymmSigned ||
      !g.isDepthwise || g.groupInputChannels != 1 || g.groupOutputChannels != 1 ||
      !hasDepthwiseProduct(g.kernelHeight, g.kernelWidth))
    return false;
  if (const auto view = builder->paddedView(g.input)) applyPaddedView(*view, &g);
  Qs8Depthwise layer;
  layer.geometry = g;
  layer.product.kernelHeight = g.kernelHeight;
  layer.product.kernelWidth = g.kernelWidth;
  layer.product.channels = g.groups;
  const uint64_t numbers[] = {kDepthwiseTile, g.kernelHeight, g.kernelWidth, g.groups};
  HEARTH_TRY(addByteLayer(
      builder, layer, PackedLayout::kQs8Depthwise, numbers, "DEPTHWISE_CONV_2D",
      depthwisePackedBytes,
      [](const ByteLayer<Qs8Depthwise>& c, uint8_t* bytes) {
        packDepthwise(c.layer.product, reinterpret_cast<const int8_t*>(c.filter), c.bias,
                      c.factors(c.layer.product.channels).data(), c.layer.inputZero, bytes);
      },
      makeQs8DepthwiseKernel));
  return true;
}

}  // namespace hearth::cpu
