// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/avx2_depthwise.h"

#include "drivers/cpu/lowering/byte_layer.h"
#include "drivers/cpu/lowering/convolution_input.h"
#include "drivers/cpu/lowering/depthwise_kernel.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"

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
        [&](const uint8_t* const* columns, size_t x, size_t step) {
          multiplyAvx2DwconvTile(product, layer_.geometry.strideWidth, columns,
                                 output + x * product.channels, step);
        });
  }
};

}  // namespace

std::unique_ptr<Kernel> makeAvx2DepthwiseKernel(const Avx2Depthwise& layer) {
  return std::make_unique<Avx2DepthwiseKernel>(layer);
}

Result<bool> addAvx2Depthwise(PlanBuilder* builder, const Convolution& convolution) {
  Convolution g = convolution;
  const OperandType type = builder->operand(g.input).type;
  const bool isSigned = type == OperandType::kTensorQuant8AsymmSigned;
  if ((!isSigned && type != OperandType::kTensorQuant8Asymm) || (isSigned && hasAvx512Vnni()) ||
      !g.isDepthwise || g.groupInputChannels != 1 || g.groupOutputChannels != 1 ||
      !hasAvx2Dwconv(g.kernelHeight, g.kernelWidth))
    return false;
  if (const auto view = builder->paddedView(g.input)) applyPaddedView(*view, &g);
  Avx2Depthwise layer;
  layer.geometry = g;
  layer.product.kernelHeight = g.kernelHeight;
  layer.product.kernelWidth = g.kernelWidth;
  layer.product.channels = g.groups;
  layer.product.isSigned = isSigned;
  layer.product.weightZero = isSigned ? 0 : builder->operand(g.filter).zeroPoint;
  const uint64_t numbers[] = {kDepthwiseTile, g.kernelHeight, g.kernelWidth, g.groups};
  HEARTH_TRY(addByteLayer(
      builder, layer, PackedLayout::kAvx2Depthwise, numbers, "DEPTHWISE_CONV_2D", avx2DwconvBytes,
      [](const ByteLayer<Avx2Depthwise>& c, uint8_t* bytes) {
        packAvx2Dwconv(c.layer.product, c.filter, c.bias,
                       c.factors(c.layer.product.channels).data(), c.layer.inputZero, bytes);
      },
      makeAvx2DepthwiseKernel));
  return true;
}

}  // namespace hearth::cpu
