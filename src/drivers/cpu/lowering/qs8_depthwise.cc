// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/qs8_depthwise.h"

#include "drivers/cpu/lowering/byte_layer.h"
#include "drivers/cpu/lowering/convolution_input.h"
#include "drivers/cpu/lowering/depthwise_kernel.h"
#include "drivers/cpu/lowering/depthwise_places_kernel.h"

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

class Qs8PlacesKernel final : public DepthwisePlacesKernel<int8_t, Qs8Depthwise> {
 public:
  explicit Qs8PlacesKernel(const Qs8Depthwise& layer)
      : DepthwisePlacesKernel(layer, static_cast<int8_t>(layer.inputZero), false) {}

 private:
  void compute(const int8_t* const* inputs, size_t count, int8_t* output) const override {
    multiplyDepthwisePlaces(layer_.product, inputs, kTogether, count, output);
  }
};

}  // namespace

bool setQs8Window(const Convolution& geometry, Qs8Dwconv* product) {
  const size_t places = size_t{geometry.kernelHeight} * geometry.kernelWidth;
  const bool isUsual = hasDepthwiseProduct(geometry.kernelHeight, geometry.kernelWidth);
  if (!isUsual && !hasDepthwisePlaces(places)) return false;
  product->kernelHeight = isUsual ? geometry.kernelHeight : places;
  product->kernelWidth = isUsual ? geometry.kernelWidth : 1;
  product->channels = geometry.groups;
  return true;
}

std::unique_ptr<Kernel> makeQs8DepthwiseKernel(const Qs8Depthwise& layer) {
  if (hasDepthwiseProduct(layer.product.kernelHeight, layer.product.kernelWidth))
    return std::make_unique<Qs8DepthwiseKernel>(layer);
  return std::make_unique<Qs8PlacesKernel>(layer);
}

Result<bool> addQs8Depthwise(PlanBuilder* builder, const Convolution& convolution) {
  Convolution g = convolution;
  if (builder->operand(g.input).type != graph::OperandType::kTensorQuant8AsymmSigned ||
      !g.isDepthwise || g.groupInputChannels != 1 || g.groupOutputChannels != 1)
    return false;
  Qs8Depthwise layer;
  if (!setQs8Window(g, &layer.product)) return false;
  if (const auto view = builder->paddedView(g.input)) applyPaddedView(*view, &g);
  layer.geometry = g;
  const uint64_t numbers[] = {kDepthwiseTile, layer.product.kernelHeight, layer.product.kernelWidth,
                              g.groups};
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
