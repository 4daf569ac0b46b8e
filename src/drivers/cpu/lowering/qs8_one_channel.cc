// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/qs8_one_channel.h"

#include <span>

#include "drivers/cpu/lowering/byte_layer.h"
#include "drivers/cpu/lowering/convolution_input.h"
#include "drivers/cpu/lowering/qs8_packing.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"

namespace hearth::cpu {
namespace {

size_t packedBytesOf(const Qs8Gemm& product) {
  return product.panels() * product.panelBytes();
}

}  // namespace

bool isOfOneChannel(const Convolution& g) {
  return g.isDepthwise && g.groups == 1 && g.groupInputChannels == 1 && g.groupOutputChannels > 1;
}

Qs8Layer oneChannelLayer(const Convolution& geometry) {
  Qs8Layer layer;
  layer.geometry = geometry;
  layer.geometry.isDepthwise = false;
  const size_t places = size_t{geometry.kernelHeight} * geometry.kernelWidth;
  layer.product.inputs = (places + kQs8Group - 1) / kQs8Group * kQs8Group;
  layer.product.columns = layer.product.outputStride = geometry.groupOutputChannels;
  return layer;
}

void packOneChannel(const Qs8Layer& layer, const int8_t* weights, const int32_t* bias,
                    const float* factors, uint8_t* packed) {
  const Convolution& g = layer.geometry;
  packQs8(
      layer.product, size_t{g.kernelHeight} * g.kernelWidth,
      [&](size_t column, size_t place) { return weights[place * g.groupOutputChannels + column]; },
      bias, factors, layer.inputZero, packed);
}

Result<bool> addQs8OneChannel(PlanBuilder* builder, const Convolution& convolution) {
  Convolution g = convolution;
  if (builder->operand(g.input).type != graph::OperandType::kTensorQuant8AsymmSigned ||
      !isOfOneChannel(g) || !hasAvx512Vnni())
    return false;
  if (const auto view = builder->paddedView(g.input)) applyPaddedView(*view, &g);
  const uint64_t numbers[] = {kQs8Columns, kQs8Group, g.kernelHeight, g.kernelWidth,
                              g.groupOutputChannels};
  HEARTH_TRY(addByteLayer(
      builder, oneChannelLayer(g), PackedLayout::kVnni, numbers, "DEPTHWISE_CONV_2D", packedBytesOf,
      [](const ByteLayer<Qs8Layer>& c, uint8_t* bytes) {
        packOneChannel(c.layer, reinterpret_cast<const int8_t*>(c.filter), c.bias,
                       c.factors(c.layer.product.columns).data(), bytes);
      },
      [](const Qs8Layer& layer) {
        return makeQs8LayerKernel(layer,
                                  std::span(layer.product.packed, packedBytesOf(layer.product)));
      }));
  return true;
}

}  // namespace hearth::cpu
