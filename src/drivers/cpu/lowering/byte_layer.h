// SPDX-License-Identifier: Apache-2.0
// How int8 and uint8 convolutions are lowered to products of ours that have a packing of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/lowering/layer_scales.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "drivers/cpu/weights/layer_packing.h"
#include "ops/quantization.h"

namespace hearth::cpu {

// What packing reads, and the layer. A Layer has a geometry, a product with the quantisation of the
// output, a zero point of the input, a source and a destination.
template <typename Layer>
struct ByteLayer : LayerPacking {
  Layer layer;
  const uint8_t* filter = nullptr;
  int32_t filterZero = 0;
  const int32_t* bias = nullptr;  // may be null
  float inputScale = 0, outputScale = 0;
  std::shared_ptr<const float> filterScales;

  // What the sums of `channels` output channels are multiplied by, computed in XNNPACK's order, so
  // that results are equal to XNNPACK's.
  std::vector<float> factors(size_t channels) const {
    std::vector<float> factors(channels);
    for (size_t i = 0; i < channels; ++i)
      factors[i] = inputScale * filterScales.get()[i] / outputScale;
    return factors;
  }
};

// Adds the node of a layer whose geometry and product are set but for what quantises and what is
// packed. bytesOf(product) are those of the packed weights, which pack(layer, bytes) writes;
// makeKernel(layer) makes the kernel over them. `layout` is theirs, `numbers` and the operands name
// the packing, and `kind` the operation in reports.
template <typename Layer, typename BytesOf, typename Pack, typename MakeKernel>
Status addByteLayer(PlanBuilder* builder, const Layer& layer, PackedLayout layout,
                    std::span<const uint64_t> numbers, const char* kind, BytesOf bytesOf, Pack pack,
                    MakeKernel makeKernel) {
  auto creation = std::make_shared<ByteLayer<Layer>>();
  ByteLayer<Layer>& c = *creation;
  c.layer = layer;
  const auto& g = layer.geometry;
  const graph::Operand& input = builder->operand(g.input);
  const graph::Operand& filter = builder->operand(g.filter);
  const graph::Operand& output = builder->operand(g.output);
  c.layer.inputZero = input.zeroPoint;
  c.layer.product.outputZero = output.zeroPoint;
  const ops::QuantizedRange range = ops::quantizedActivationRange(g.activation, output);
  c.layer.product.lowest = range.lowest;
  c.layer.product.highest = range.highest;
  const LayerScales scales = LayerScales::of(input, filter, output);
  c.inputScale = scales.input;
  c.outputScale = scales.output;
  c.filterScales = scales.from(0, g.groups * g.groupOutputChannels);
  c.filterZero = filter.type == graph::OperandType::kTensorQuant8Asymm ? filter.zeroPoint : 0;
  c.place = WeightPlace::of(builder->currentOperation(), layout);
  c.filter = builder->constants().weightData(g.filter, c.place);
  if (g.bias != UINT32_MAX) {
    HEARTH_ASSIGN(const uint8_t* const bias, builder->constants().biasData(g.bias, c.place));
    c.bias = reinterpret_cast<const int32_t*>(bias);
  }
  const uint32_t operands[] = {g.input, g.filter, g.bias, g.output};
  c.packed = builder->packingSource(operands, numbers);
  c.weights = builder->weights();
  c.layer.source = builder->read(g.input);
  c.layer.destination = builder->write(g.output);
  Node& node = builder->add("own", {c.layer.source}, {c.layer.destination});
  builder->constants().releaseAfterPacking(&node, g.filter);
  node.create = [creation, kind, bytesOf, pack, makeKernel]() -> Result<std::unique_ptr<Kernel>> {
    const ByteLayer<Layer>& made = *creation;
    Layer packedLayer = made.layer;
    HEARTH_ASSIGN(
        packedLayer.product.packed,
        made.weights->pack(made.place, kind, made.packed.get(), bytesOf(made.layer.product),
                           [&](uint8_t* bytes) { pack(made, bytes); }));
    return makeKernel(packedLayer);
  };
  return {};
}

}  // namespace hearth::cpu
