// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/hybrid_fully_connected.h"

#include <optional>
#include <utility>
#include <vector>

#include "drivers/cpu/hybrid_weights.h"
#include "drivers/cpu/quantized_rows.h"
#include "drivers/cpu/xnn_kernel.h"

namespace hearth::cpu {
namespace {

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

xnn_status createOperator(const Creation& c, xnn_operator_t* op) {
  const size_t in = c.layer.inputChannels;
  const size_t out = c.layer.outputChannels;
  const auto create = [&](const void* kernel) {
    return xnn_create_fully_connected_nc_qd8_f32_qc8w(
        in, out, in, out, c.kernelScales.data(), static_cast<const int8_t*>(kernel), c.bias,
        c.floats.lowest, c.floats.highest, 0, nullptr, c.weights->provider(), op);
  };
  if (c.isInt4) {
    return c.weights->createConverted(
        c.place, "FULLY_CONNECTED", c.packed.get(), [&] { return widenInt4(c.kernel, in * out); },
        create);
  }
  return c.weights->create(c.place, "FULLY_CONNECTED", c.packed.get(),
                           [&] { return create(c.kernel); });
}

}  // namespace

Result<bool> addHybridFullyConnected(PlanBuilder* builder, const FullyConnected& layer) {
  std::optional<HybridWeights> weights = hybridWeights(
      builder, layer.input, layer.filter, layer.bias, layer.output, layer.outputChannels);
  if (!weights) return false;
  Creation c;
  c.layer = layer;
  c.isInt4 = weights->isInt4;
  c.kernelScales = std::move(weights->scales);
  c.place = {builder->currentOperation(), 0};
  c.kernel = builder->weightData(layer.filter, c.place);
  if (layer.bias != UINT32_MAX)
    c.bias = reinterpret_cast<const float*>(builder->weightData(layer.bias, c.place));
  const uint32_t operands[] = {layer.filter, layer.bias};
  const uint64_t parameters[] = {layer.inputChannels, layer.outputChannels};
  c.packed = builder->packingSource(operands, parameters);
  c.floats = ops::activationRange(layer.activation);
  c.weights = builder->weights();
  c.source = quantizeRows(builder, layer.input, layer.rows, layer.inputChannels);
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
