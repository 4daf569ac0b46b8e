// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/avx2_layer.h"

#include <utility>
#include <vector>

#include "drivers/cpu/kernels/byte_tasks.h"
#include "drivers/cpu/lowering/channel_split.h"
#include "drivers/cpu/lowering/layer_scales.h"
#include "drivers/cpu/microkernels/portable/im2col.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "drivers/cpu/weights/layer_packing.h"
#include "ops/quantization.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

class Avx2LayerKernel final : public ByteTaskKernel<Avx2Layer> {
 public:
  explicit Avx2LayerKernel(const Avx2Layer& layer)
      : ByteTaskKernel(layer),
        windows_(layer.geometry, 1, static_cast<uint8_t>(layer.inputZero)),
        form_(layer.product.weights.form()),
        inputs_(windows_.windowBytes()),
        rowBytes_(avx2RowBytes(form_, inputs_)),
        flip_(layer.product.output == Avx2Output::kInt8 ? 0x80 : 0),
        isDirect_(layer.geometry.isOverPixels()),
        gathersInPlace_(form_ != Avx2Form::kWords) {}

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    return tasks_.divide(threads::threadsOf(pool), windows_.windowCount(),
                         rowBytes_ + (isDirect_ || gathersInPlace_ ? 0 : inputs_), kAvx2ReadSlack);
  }

 private:
  void compute(size_t first, size_t last, size_t firstPanel, size_t lastPanel,
               uint8_t* scratch) const override {
    const size_t count = last - first;
    const auto* const source = reinterpret_cast<const uint8_t*>(source_);
    const uint8_t* rows = source + first * inputs_;
    size_t stride = inputs_;
    if (!isDirect_) {
      uint8_t* const gathered =
          gathersInPlace_ ? scratch : scratch + count * rowBytes_ + kAvx2ReadSlack;
      stride = gathersInPlace_ ? rowBytes_ : inputs_;
      windows_.gather(source, first, last, gathered, stride);
      rows = gathered;
    }
    prepareAvx2Rows(form_, rows, stride, count, inputs_, flip_, scratch);
    multiplyAvx2(layer_.product, scratch, count, firstPanel, lastPanel,
                 reinterpret_cast<uint8_t*>(destination_) + layer_.outputOffset +
                     first * layer_.product.outputStride);
  }

  const Im2col windows_;
  const Avx2Form form_;
  const size_t inputs_;
  const size_t rowBytes_;
  const uint8_t flip_;
  const bool isDirect_;
  const bool gathersInPlace_;  // where rows are prepared
};

// What packing reads, and the layer without its panels.
struct Creation : LayerPacking {
  Avx2Layer layer;
  const char* kind = nullptr;
  Avx2Weights source;  // `values` of the first channel of this part
  const int32_t* bias = nullptr;
  std::vector<float> factors;
  size_t rows = 0;
};

Result<std::unique_ptr<Kernel>> makeKernel(const Creation& c) {
  Avx2Weights weights = c.source;
  weights.factors = c.factors.data();
  std::vector<int32_t> constants;
  Avx2Layer layer = c.layer;
  HEARTH_ASSIGN(layer.product.weights,
                packAvx2(c, c.kind, weights, c.rows, [&](const Avx2Weights& read) {
                  constants = avx2Constants(read, c.bias, c.layer.inputZero);
                  return constants.data();
                }));
  return makeAvx2LayerKernel(layer);
}

bool typesFit(PlanBuilder* builder, const Convolution& g) {
  if (!hasAvx2() || hasAvx512Vnni() || g.isDepthwise || g.groups != 1) return false;
  const OperandType type = builder->operand(g.input).type;
  // So many products of bytes stay within 32 bits.
  constexpr size_t kMostInputs = 32768;
  const size_t inputs = size_t{g.kernelHeight} * g.kernelWidth * g.groupInputChannels;
  return (type == OperandType::kTensorQuant8AsymmSigned ||
          type == OperandType::kTensorQuant8Asymm) &&
         inputs != 0 && inputs <= kMostInputs && g.groupOutputChannels != 0 &&
         g.batch * g.outputHeight * g.outputWidth != 0 &&
         builder->constants().converted(g.filter) == nullptr;
}

}  // namespace

std::unique_ptr<Kernel> makeAvx2LayerKernel(const Avx2Layer& layer) {
  return std::make_unique<Avx2LayerKernel>(layer);
}

std::vector<int32_t> avx2Constants(const Avx2Weights& weights, const int32_t* bias,
                                   int32_t inputZero) {
  const auto zero = static_cast<uint32_t>(inputZero + (weights.isSigned ? 128 : 0));
  std::vector<int32_t> constants(weights.columns);
  // The arithmetic is unsigned, because a hostile bias may make it wrap, as in the kernels.
  for (size_t column = 0; column < weights.columns; ++column)
    constants[column] = static_cast<int32_t>(
        static_cast<uint32_t>(bias == nullptr ? 0 : bias[column]) - zero * weights.sumOf(column));
  return constants;
}

Result<Avx2Panels> packAvx2(const LayerPacking& packing, const char* kind,
                            const Avx2Weights& weights, size_t rows,
                            const std::function<const int32_t*(const Avx2Weights&)>& constantsOf) {
  const auto panelsOf = [&](std::span<const uint8_t> packed) {
    return Avx2Panels::read(packed, weights.inputs, weights.columns);
  };
  std::optional<Avx2Packer> packer;
  const auto measure = [&] {
    Avx2Weights whole = weights;
    whole.constants = constantsOf(weights);
    packer.emplace(whole, rows);
    return packer->bytes();
  };
  HEARTH_ASSIGN(const std::span<const uint8_t> packed,
                packing.weights->packMeasured(
                    packing.place, kind, packing.packed.get(),
                    [&](std::span<const uint8_t> known) { return panelsOf(known).has_value(); },
                    measure, [&](uint8_t* bytes) { packer->pack(bytes); }));
  auto panels = panelsOf(packed);
  if (!panels)
    return fail(ErrorCode::kUnsupported, "The packed weights of a {} are damaged.", kind);
  return std::move(*panels);
}

Result<bool> addAvx2Layer(PlanBuilder* builder, const Convolution& g, const char* kind) {
  if (!typesFit(builder, g)) return false;
  const graph::Operand& input = builder->operand(g.input);
  const graph::Operand& filter = builder->operand(g.filter);
  const graph::Operand& output = builder->operand(g.output);
  const size_t inputs = size_t{g.kernelHeight} * g.kernelWidth * g.groupInputChannels;
  const std::vector<ChannelRange> parts = channelParts(g.groupOutputChannels, inputs);
  // Only packing the last part may read past the constant's end.
  const WeightPlace last =
      WeightPlace::of(builder->currentOperation(), PackedLayout::kAvx2, parts.size() - 1);
  const uint8_t* const values = builder->constants().weightData(g.filter, last);
  const uint8_t* bias = nullptr;
  if (g.bias != UINT32_MAX) {
    HEARTH_ASSIGN(bias, builder->constants().biasData(g.bias, last));
  }
  const ops::QuantizedRange range = ops::quantizedActivationRange(g.activation, output);
  const bool isSigned = input.type == OperandType::kTensorQuant8AsymmSigned;
  const LayerScales scales = LayerScales::of(input, filter, output);
  const ValueId source = builder->read(g.input);
  const ValueId destination = builder->write(g.output);
  for (uint32_t part = 0; part < parts.size(); ++part) {
    const ChannelRange channels = parts[part];
    Creation c;
    c.layer.geometry = g;
    c.layer.product.output = isSigned ? Avx2Output::kInt8 : Avx2Output::kUint8;
    c.layer.product.outputZero = output.zeroPoint;
    c.layer.product.lowest = range.lowest;
    c.layer.product.highest = range.highest;
    c.layer.product.outputStride = g.groupOutputChannels;
    c.layer.inputZero = input.zeroPoint;
    c.layer.source = source;
    c.layer.destination = destination;
    c.layer.outputOffset = channels.first;
    c.kind = kind;
    c.rows = g.batch * g.outputHeight * g.outputWidth;
    if (values != nullptr) c.source.values = values + channels.first * inputs;
    if (bias != nullptr) c.bias = reinterpret_cast<const int32_t*>(bias) + channels.first;
    c.source.isSigned = isSigned;
    c.source.zero = isSigned ? 0 : filter.zeroPoint;
    c.source.inputs = inputs;
    c.source.columns = channels.count;
    const std::shared_ptr<const float> filterScales =
        scales.from(channels.first, g.groupOutputChannels);
    // Computed in XNNPACK's order, so that results are equal to XNNPACK's.
    for (size_t i = 0; i < channels.count; ++i)
      c.factors.push_back(scales.input * filterScales.get()[i] / scales.output);
    c.weights = builder->weights();
    c.place = WeightPlace::of(builder->currentOperation(), PackedLayout::kAvx2, part);
    const uint32_t operands[] = {g.input, g.filter, g.bias, g.output};
    // The first number tells this packing from those of other kernels.
    const uint64_t parameters[] = {kAvx2Window, inputs, channels.count, channels.first};
    c.packed = builder->packingSource(operands, parameters);
    Node& node = builder->add("own", {source}, {destination});
    releaseAfterPacking(builder, &node, g.filter, parts, part, inputs);
    node.create = [creation = std::make_shared<const Creation>(std::move(c))] {
      return makeKernel(*creation);
    };
  }
  return true;
}

}  // namespace hearth::cpu
