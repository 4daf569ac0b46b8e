// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/quantized_rows.h"

#include "drivers/cpu/kernels/xnn_kernel.h"

namespace hearth::cpu {

QuantizedRows quantizeRows(PlanBuilder* builder, uint32_t operand, size_t rows, size_t channels) {
  if (const auto known = builder->quantizedRows(operand, channels))
    return {known->first, known->second};
  QuantizedRows made;
  const ValueId source = builder->read(operand);
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
  builder->setQuantizedRows(operand, channels, {made.numbers, made.parameters});
  return made;
}

}  // namespace hearth::cpu
