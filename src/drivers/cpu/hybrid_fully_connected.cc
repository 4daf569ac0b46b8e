// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/hybrid_fully_connected.h"

#include <algorithm>
#include <vector>

#include "drivers/cpu/xnn_kernel.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

// The rows of an operand as 8-bit numbers, and the scale and zero point of each.
struct QuantizedRows {
  ValueId numbers = 0;
  ValueId parameters = 0;
};

struct Creation {
  FullyConnected layer;
  bool isInt4 = false;
  const uint8_t* kernel = nullptr;
  const float* bias = nullptr;
  std::vector<float> kernelScales;
  ops::ActivationRange floats{};
  PackedWeights* weights = nullptr;
  WeightPlace place;
  std::shared_ptr<const base::Sha256Digest> packed;
  QuantizedRows source;
  ValueId destination = 0;
};

// Two numbers of 4 bits in each byte, the lower half first.
std::vector<int8_t> widened(const uint8_t* pairs, size_t count) {
  std::vector<int8_t> numbers(count + kReadSlack);
  for (size_t i = 0; i < count; ++i) {
    const int half = pairs[i / 2] >> (i % 2 * 4) & 0xF;
    numbers[i] = static_cast<int8_t>(half >= 8 ? half - 16 : half);
  }
  return numbers;
}

xnn_status createOperator(const Creation& c, xnn_operator_t* op) {
  const size_t in = c.layer.inputChannels;
  const size_t out = c.layer.outputChannels;
  const auto create = [&](const void* kernel) {
    return xnn_create_fully_connected_nc_qd8_f32_qc8w(
        in, out, in, out, c.kernelScales.data(), static_cast<const int8_t*>(kernel), c.bias,
        c.floats.lowest, c.floats.highest, 0, nullptr, c.weights->provider(), op);
  };
  if (c.isInt4) {
    // Every number of 4 bits is one of 8 bits: packed once, they run on the kernels that are right
    // on every CPU, which XNNPACK's own for 4 bits are not.
    return c.weights->createConverted(
        c.place, "FULLY_CONNECTED", c.packed.get(), [&] { return widened(c.kernel, in * out); },
        create);
  }
  return c.weights->create(c.place, "FULLY_CONNECTED", c.packed.get(),
                           [&] { return create(c.kernel); });
}

// Made once for all layers that read the operand.
QuantizedRows quantized(PlanBuilder* builder, const FullyConnected& layer) {
  const size_t rows = layer.rows;
  const size_t channels = layer.inputChannels;
  if (const auto known = builder->quantizedRows(layer.input, layer.inputChannels))
    return {known->first, known->second};
  QuantizedRows made;
  const ValueId source = builder->read(layer.input);
  made.numbers = builder->temporary(rows * channels);
  made.parameters = builder->temporary((rows + XNN_EXTRA_QUANTIZATION_PARAMS) *
                                       sizeof(struct xnn_quantization_params));
  Node& node = builder->add("xnnpack", {source}, {made.numbers, made.parameters});
  node.create = [=]() -> Result<std::unique_ptr<Kernel>> {
    xnn_operator_t op = nullptr;
    const xnn_status status = xnn_create_convert_nc_f32_qd8(0, &op);
    XnnCalls calls;
    calls.reshape = [=](xnn_operator_t o, size_t*, size_t*, pthreadpool_t pool) {
      return xnn_reshape_convert_nc_f32_qd8(o, rows, channels, channels, channels, pool);
    };
    calls.setup = [=](xnn_operator_t o, void*, std::span<void* const> at) {
      return xnn_setup_convert_nc_f32_qd8(
          o, static_cast<const float*>(at[source]), static_cast<int8_t*>(at[made.numbers]),
          static_cast<struct xnn_quantization_params*>(at[made.parameters]));
    };
    return makeXnnKernel("convert_nc_f32_qd8", status, op, std::move(calls));
  };
  builder->setQuantizedRows(layer.input, layer.inputChannels, {made.numbers, made.parameters});
  return made;
}

bool typesFit(PlanBuilder* builder, const FullyConnected& layer) {
  const graph::Operand& filter = builder->operand(layer.filter);
  if (builder->operand(layer.input).type != OperandType::kTensorFloat32 ||
      builder->operand(layer.output).type != OperandType::kTensorFloat32 || !filter.isConstant())
    return false;
  if (layer.bias != UINT32_MAX &&
      (!builder->operand(layer.bias).isConstant() ||
       builder->operand(layer.bias).type != OperandType::kTensorFloat32))
    return false;
  if (layer.hasBlockScales) return false;
  switch (filter.type) {
    case OperandType::kTensorQuant8AsymmSigned:
    case OperandType::kTensorQuant8Symm:
      return filter.zeroPoint == 0;
    case OperandType::kTensorQuant8SymmPerChannel:
      return filter.perChannel.channelDim == 0;
    case OperandType::kTensorInt4:
      return filter.zeroPoint == 0 &&
             (filter.perChannel.scales.empty() || filter.perChannel.channelDim == 0);
    default:
      return false;
  }
}

}  // namespace

Result<bool> addHybridFullyConnected(PlanBuilder* builder, const FullyConnected& layer) {
  if (!typesFit(builder, layer)) return false;
  const graph::Operand& filter = builder->operand(layer.filter);
  Creation c;
  c.layer = layer;
  c.isInt4 = filter.type == OperandType::kTensorInt4;
  c.kernelScales = filter.perChannel.scales;
  if (c.kernelScales.empty()) c.kernelScales.assign(layer.outputChannels, filter.scale);
  if (c.kernelScales.size() != layer.outputChannels) return false;
  // XNNPACK takes scales that are normal numbers only.
  if (!std::ranges::all_of(c.kernelScales, [](float s) { return std::isnormal(s) && s > 0; }))
    return false;
  c.kernelScales.resize(c.kernelScales.size() + XNN_EXTRA_QUANTIZATION_PARAMS,
                        c.kernelScales.back());
  c.place = {builder->currentOperation(), 0};
  c.kernel = builder->weightData(layer.filter, c.place);
  if (layer.bias != UINT32_MAX)
    c.bias = reinterpret_cast<const float*>(builder->weightData(layer.bias, c.place));
  const uint32_t operands[] = {layer.filter, layer.bias};
  const uint64_t parameters[] = {layer.inputChannels, layer.outputChannels};
  c.packed = builder->packingSource(operands, parameters);
  c.floats = ops::activationRange(layer.activation);
  c.weights = builder->weights();
  c.source = quantized(builder, layer);
  c.destination = builder->write(layer.output);

  Node& node = builder->add("xnnpack", {c.source.numbers, c.source.parameters}, {c.destination});
  builder->releaseAfterPacking(&node, layer.filter);
  node.create = [shared = std::make_shared<const Creation>(
                     std::move(c))]() -> Result<std::unique_ptr<Kernel>> {
    xnn_operator_t op = nullptr;
    const xnn_status status = createOperator(*shared, &op);
    XnnCalls calls;
    calls.reshape = [shared](xnn_operator_t o, size_t*, size_t*, pthreadpool_t pool) {
      return xnn_reshape_fully_connected_nc_qd8_f32_qc8w(o, shared->layer.rows, pool);
    };
    calls.setup = [shared](xnn_operator_t o, void*, std::span<void* const> at) {
      return xnn_setup_fully_connected_nc_qd8_f32_qc8w(
          o, static_cast<const int8_t*>(at[shared->source.numbers]),
          static_cast<float*>(at[shared->destination]),
          static_cast<const struct xnn_quantization_params*>(at[shared->source.parameters]));
    };
    calls.hint.columns = shared->layer.outputChannels;
    calls.hint.packedBytesPerColumn =
        shared->weights->sizeOf(shared->place) / shared->layer.outputChannels;
    return makeXnnKernel("fully_connected_nc_qd8_f32_qc8w", status, op, std::move(calls));
  };
  return true;
}

}  // namespace hearth::cpu
