// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/pooling.h"

#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/kernels/xnn_setup.h"
#include "drivers/cpu/lowering/declined.h"
#include "drivers/cpu/lowering/quantized_average_pool.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

struct Creation {
  Pooling pool;
  OperandType type = OperandType::kTensorFloat32;
  ops::ActivationRange floats{};
  ops::QuantizedRange steps{};
  ValueId source = 0, destination = 0;
};

xnn_status createOperator(const Creation& c, xnn_operator_t* op) {
  const Pooling& p = c.pool;
  if (p.isMaximum) {
    switch (c.type) {
      case OperandType::kTensorFloat32:
        return xnn_create_max_pooling2d_nhwc_f32(p.top, p.right, p.bottom, p.left, p.filterHeight,
                                                 p.filterWidth, p.strideHeight, p.strideWidth, 1, 1,
                                                 c.floats.lowest, c.floats.highest, 0, op);
      case OperandType::kTensorQuant8Asymm:
        return xnn_create_max_pooling2d_nhwc_u8(p.top, p.right, p.bottom, p.left, p.filterHeight,
                                                p.filterWidth, p.strideHeight, p.strideWidth, 1, 1,
                                                static_cast<uint8_t>(c.steps.lowest),
                                                static_cast<uint8_t>(c.steps.highest), 0, op);
      default:
        return xnn_create_max_pooling2d_nhwc_s8(p.top, p.right, p.bottom, p.left, p.filterHeight,
                                                p.filterWidth, p.strideHeight, p.strideWidth, 1, 1,
                                                static_cast<int8_t>(c.steps.lowest),
                                                static_cast<int8_t>(c.steps.highest), 0, op);
    }
  }
  return xnn_create_average_pooling2d_nhwc_f32(p.top, p.right, p.bottom, p.left, p.filterHeight,
                                               p.filterWidth, p.strideHeight, p.strideWidth,
                                               c.floats.lowest, c.floats.highest, 0, op);
}

xnn_status reshapeOperator(const Creation& c, xnn_operator_t op, size_t* workspace,
                           size_t* alignment, pthreadpool_t threads) {
  const Pooling& p = c.pool;
  size_t height = 0;
  size_t width = 0;
  xnn_status status;
  const auto maximum = [&](auto reshape) {
    return reshape(op, p.batch, p.inputHeight, p.inputWidth, p.channels, p.channels, p.channels,
                   &height, &width, threads);
  };
  if (p.isMaximum) {
    status = c.type == OperandType::kTensorFloat32 ? maximum(xnn_reshape_max_pooling2d_nhwc_f32)
             : c.type == OperandType::kTensorQuant8Asymm
                 ? maximum(xnn_reshape_max_pooling2d_nhwc_u8)
                 : maximum(xnn_reshape_max_pooling2d_nhwc_s8);
  } else {
    status = xnn_reshape_average_pooling2d_nhwc_f32(op, p.batch, p.inputHeight, p.inputWidth,
                                                    p.channels, p.channels, p.channels, workspace,
                                                    alignment, &height, &width, threads);
  }
  return statusOfReshape(status, height, width, p.outputHeight, p.outputWidth);
}

xnn_status setupOperator(const Creation& c, xnn_operator_t op, void* workspace,
                         std::span<void* const> at) {
  const void* in = at[c.source];
  void* out = at[c.destination];
  if (c.pool.isMaximum)
    return setupTyped(c.type, op, in, out, xnn_setup_max_pooling2d_nhwc_f32,
                      xnn_setup_max_pooling2d_nhwc_u8, xnn_setup_max_pooling2d_nhwc_s8);
  return xnn_setup_average_pooling2d_nhwc_f32(op, workspace, static_cast<const float*>(in),
                                              static_cast<float*>(out));
}

}  // namespace

Result<bool> addPooling(PlanBuilder* builder, const Pooling& pooling) {
  const graph::Operand& input = builder->operand(pooling.input);
  const graph::Operand& output = builder->operand(pooling.output);
  const bool isFloat = input.type == OperandType::kTensorFloat32;
  const bool isUnsigned = input.type == OperandType::kTensorQuant8Asymm;
  const bool isSigned = input.type == OperandType::kTensorQuant8AsymmSigned;
  if (input.type != output.type || !(isFloat || isUnsigned || isSigned))
    return builder->decline("there is no faster pooling of its types");
  if (!pooling.isMaximum && !isFloat) return addQuantizedAveragePool(builder, pooling);
  // Maximum pooling does not rescale.
  if (pooling.isMaximum && !isFloat &&
      (input.scale != output.scale || input.zeroPoint != output.zeroPoint))
    return builder->decline(kOtherScale);
  if (!activationFits(pooling.activation, output)) return builder->decline(kOneValue);
  if (pooling.filterHeight == 1 && pooling.filterWidth == 1)
    return builder->decline("XNNPACK does not pool windows of one place");
  Creation c;
  c.pool = pooling;
  c.type = input.type;
  c.floats = ops::activationRange(pooling.activation);
  c.steps = ops::quantizedActivationRange(pooling.activation, output);
  c.source = builder->read(pooling.input);
  c.destination = builder->write(pooling.output);
  // XNNPACK goes through windows of more than 9 places several times. It then loads the results so
  // far from the output, in whole vectors that can end behind it.
  constexpr uint32_t kPlacesAtOnce = 9;
  constexpr uint64_t kVectorBytes = 64;
  if (pooling.isMaximum && pooling.filterHeight * pooling.filterWidth > kPlacesAtOnce)
    builder->reserveWriteSlack(c.destination, kVectorBytes);
  builder->add("xnnpack", {c.source}, {c.destination}).create =
      [c]() -> Result<std::unique_ptr<Kernel>> {
    xnn_operator_t op = nullptr;
    const xnn_status status = createOperator(c, &op);
    XnnCalls calls;
    calls.reshape = [c](xnn_operator_t o, size_t* workspace, size_t* alignment,
                        pthreadpool_t threads) {
      return reshapeOperator(c, o, workspace, alignment, threads);
    };
    calls.setup = [c](xnn_operator_t o, void* workspace, std::span<void* const> at) {
      return setupOperator(c, o, workspace, at);
    };
    return makeXnnKernel("pooling2d_nhwc", status, op, std::move(calls));
  };
  return true;
}

}  // namespace hearth::cpu
