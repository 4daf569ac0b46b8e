// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/elementwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "drivers/cpu/kernels/f32_add_kernel.h"
#include "drivers/cpu/kernels/function_kernel.h"
#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/lowering/declined.h"
#include "drivers/cpu/microkernels/x86/byte_add.h"
#include "drivers/cpu/platform/read_slack.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

// Rows of fewer numbers are not worth a loop of ours.
constexpr uint64_t kFewForLoop = 16;

xnn_datatype datatypeOf(OperandType type) {
  switch (type) {
    case OperandType::kTensorFloat32:
      return xnn_datatype_fp32;
    case OperandType::kTensorFloat16:
      return xnn_datatype_fp16;
    case OperandType::kTensorQuant8Asymm:
      return xnn_datatype_quint8;
    case OperandType::kTensorQuant8AsymmSigned:
      return xnn_datatype_qint8;
    default:
      return xnn_datatype_invalid;
  }
}

xnn_quantization_params quantizationOf(const graph::Operand& operand) {
  if (operand.scale == 0.0f) return {0, 1.0f};
  return {operand.zeroPoint, operand.scale};
}

std::vector<size_t> shapeOf(const ops::Tensor& tensor) {
  return {tensor.dimensions.begin(), tensor.dimensions.end()};
}

// The limits of XNNPACK's fixed-point arithmetic for 8-bit types.
bool quantizationFits(xnn_binary_operator op, const graph::Operand& a, const graph::Operand& b,
                      const graph::Operand& out) {
  if (!graph::isQuantized(out.type)) return true;
  const double scaleA = static_cast<double>(a.scale);
  const double scaleB = static_cast<double>(b.scale);
  switch (op) {
    case xnn_binary_add:
    case xnn_binary_subtract:
      return isScaleInRange(scaleA / out.scale, -10, 8) &&
             isScaleInRange(scaleB / out.scale, -10, 8);
    case xnn_binary_multiply:
      return isScaleInRange(scaleA * scaleB / out.scale, -16, 8);
    default:
      return false;
  }
}

bool unaryQuantizationFits(xnn_unary_operator op, const graph::Operand& in,
                           const graph::Operand& out) {
  const bool isFromQuantized = graph::isQuantized(in.type);
  const bool isToQuantized = graph::isQuantized(out.type);
  if (!isFromQuantized || !isToQuantized) return true;
  switch (op) {
    // Clamping leaves the scale alone.
    case xnn_unary_clamp:
      return in.scale == out.scale && in.zeroPoint == out.zeroPoint;
    case xnn_unary_convert:
      return in.type == out.type &&
             isScaleInRange(static_cast<double>(in.scale) / out.scale, -8, 7);
    // Tables of 256 entries take any scale.
    case xnn_unary_sigmoid:
    case xnn_unary_tanh:
      return true;
    default:
      return false;
  }
}

// Whether a clamp leaves an integer more than one possible value, which XNNPACK asserts.
bool clampFits(const xnn_unary_params& params, const graph::Operand& out) {
  if (!graph::isQuantized(out.type)) return true;
  const ops::QuantizedRange range = ops::quantizedRange(out.type);
  const auto stepOf = [&](float limit) {
    return std::clamp(std::nearbyint(double{limit} / out.scale) + out.zeroPoint,
                      static_cast<double>(range.lowest), static_cast<double>(range.highest));
  };
  return stepOf(params.clamp.min) < stepOf(params.clamp.max);
}

// Whether `tensor` has the shape of `output`, or is a row of at least `fewest` elements that
// repeats along its first dimensions.
bool isRowOf(const ops::Tensor& tensor, const ops::Tensor& output, uint64_t fewest) {
  if (tensor.dimensions == output.dimensions) return true;
  auto first = tensor.dimensions.begin();
  while (first != tensor.dimensions.end() && *first == 1) ++first;
  const auto rank = tensor.dimensions.end() - first;
  return tensor.elementCount() >= fewest &&
         std::equal(first, tensor.dimensions.end(), output.dimensions.end() - rank);
}

// A constant row that an operation repeats along the first dimensions of its other operand, written
// out several times: XNNPACK calls its microkernel for each row, however short.
struct RepeatedRow {
  std::shared_ptr<const std::vector<uint8_t>> bytes;
  size_t rows = 0;     // how often the operation repeats them
  size_t columns = 0;  // elements in `bytes`
};

// The row `operand`; none if it is none, or long enough as it is.
std::optional<RepeatedRow> repeatedRow(PlanBuilder* builder, uint32_t operand,
                                       const ops::Tensor& output) {
  constexpr uint64_t kLongEnough = 256;
  constexpr uint64_t kLongest = 1024;
  const ops::Tensor& row = builder->tensor(operand);
  const uint64_t count = row.elementCount();
  if (count == 0 || count >= kLongEnough || row.dimensions == output.dimensions ||
      !isRowOf(row, output, 2))
    return std::nullopt;
  const uint64_t all = output.elementCount() / count;
  uint64_t times = std::min(all, kLongest / count);
  while (all % times != 0) --times;
  const uint8_t* const data = times > 1 ? builder->constants().elements(operand) : nullptr;
  if (data == nullptr) return std::nullopt;
  const size_t bytes = count * graph::elementSize(row.type());
  std::vector<uint8_t> repeated(times * bytes + kReadSlack);
  for (uint64_t i = 0; i < times; ++i) std::memcpy(repeated.data() + i * bytes, data, bytes);
  return RepeatedRow{std::make_shared<const std::vector<uint8_t>>(std::move(repeated)), all / times,
                     times * count};
}

struct Unary {
  xnn_unary_operator op = xnn_unary_invalid;
  bool hasParams = false;
  xnn_unary_params params{};
  xnn_datatype inputType = xnn_datatype_invalid, outputType = xnn_datatype_invalid;
  xnn_quantization_params inputQuantization{}, outputQuantization{};
  uint64_t count = 0;
  ValueId source = 0, destination = 0;
};

Result<std::unique_ptr<Kernel>> makeUnary(const Unary& u) {
  xnn_operator_t op = nullptr;
  const xnn_status status = xnn_create_unary_elementwise_nc(
      u.op, u.inputType, u.outputType, u.hasParams ? &u.params : nullptr, &u.inputQuantization,
      &u.outputQuantization, 0, &op);
  XnnCalls calls;
  calls.reshape = [u](xnn_operator_t o, size_t*, size_t*, pthreadpool_t pool) {
    // One row of all elements: XNNPACK splits contiguous rows among threads by itself.
    return xnn_reshape_unary_elementwise_nc(o, u.count, 1, 1, 1, pool);
  };
  calls.setup = [u](xnn_operator_t o, void*, std::span<void* const> at) {
    return xnn_setup_unary_elementwise_nc(o, at[u.source], at[u.destination]);
  };
  return makeXnnKernel("unary_elementwise_nc", status, op, std::move(calls));
}

void addUnaryNode(PlanBuilder* builder, const Unary& unary) {
  Node& node = builder->add("xnnpack", {unary.source}, {unary.destination});
  if (unary.inputType == unary.outputType) node.inPlaceInputs = {0};
  node.create = [unary] {
    return makeUnary(unary);
  };
}

// Limits `value` in place where the activation is narrower than the type.
void addClampInPlace(PlanBuilder* builder, ValueId value, uint32_t operandIndex,
                     ops::FusedActivation activation) {
  const graph::Operand& operand = builder->operand(operandIndex);
  const ops::ActivationRange range = ops::activationRange(activation);
  if (std::isinf(range.lowest) && std::isinf(range.highest)) return;
  if (graph::isQuantized(operand.type)) {
    const ops::QuantizedRange steps = ops::quantizedActivationRange(activation, operand);
    const ops::QuantizedRange all = ops::quantizedRange(operand.type);
    if (steps.lowest == all.lowest && steps.highest == all.highest) return;
  }
  Unary unary;
  unary.op = xnn_unary_clamp;
  unary.hasParams = true;
  unary.params.clamp = {range.lowest, range.highest};
  unary.inputType = unary.outputType = datatypeOf(operand.type);
  unary.inputQuantization = unary.outputQuantization = quantizationOf(operand);
  unary.count = builder->tensor(operandIndex).elementCount();
  unary.source = unary.destination = value;
  addUnaryNode(builder, unary);
}

struct Binary {
  xnn_binary_operator op;
  xnn_datatype type;
  xnn_quantization_params a, b, output;
};

// `isWholeFirst`: the row is the second operand.
Result<std::unique_ptr<Kernel>> makeRowKernel(const Binary& binary, const RepeatedRow& row,
                                              bool isWholeFirst, ValueId whole, ValueId output) {
  xnn_operator_t created = nullptr;
  const xnn_status status = xnn_create_binary_elementwise_nd(
      binary.op, binary.type, &binary.a, &binary.b, &binary.output, 0, &created);
  XnnCalls calls;
  calls.reshape = [=](xnn_operator_t o, size_t*, size_t*, pthreadpool_t pool) {
    const std::array<size_t, 2> all = {row.rows, row.columns};
    const std::array<size_t, 2> one = {1, row.columns};
    return xnn_reshape_binary_elementwise_nd(o, 2, (isWholeFirst ? all : one).data(), 2,
                                             (isWholeFirst ? one : all).data(), pool);
  };
  calls.setup = [=](xnn_operator_t o, void*, std::span<void* const> at) {
    const void* const bytes = row.bytes->data();
    return xnn_setup_binary_elementwise_nd(o, isWholeFirst ? at[whole] : bytes,
                                           isWholeFirst ? bytes : at[whole], at[output]);
  };
  return makeXnnKernel("binary_elementwise_nd", status, created, std::move(calls));
}

Result<std::unique_ptr<Kernel>> makeByteAddKernel(const ByteAdd& add, uint64_t count, ValueId a,
                                                  ValueId b, ValueId sum) {
  return makeFunctionKernel([=](const KernelRun& run) -> Status {
    threads::forRanges(run.pool, count, threads::grainOf(3), [&](uint64_t begin, uint64_t end) {
      add.run(run.at<const uint8_t>(a) + begin, run.at<const uint8_t>(b) + begin, end - begin,
              run.at<uint8_t>(sum) + begin);
    });
    return {};
  });
}

}  // namespace

Result<bool> addBinary(PlanBuilder* builder, xnn_binary_operator op, uint32_t a, uint32_t b,
                       uint32_t output, ops::FusedActivation activation) {
  const graph::Operand& operandA = builder->operand(a);
  const graph::Operand& operandB = builder->operand(b);
  const graph::Operand& operandOut = builder->operand(output);
  const xnn_datatype type = datatypeOf(operandA.type);
  if (type == xnn_datatype_fp16) return builder->decline(kHalf);
  if (type == xnn_datatype_invalid || operandB.type != operandA.type ||
      operandOut.type != operandA.type)
    return builder->decline("XNNPACK has no such operator for its types");
  const ops::Tensor& tensorA = builder->tensor(a);
  const ops::Tensor& tensorB = builder->tensor(b);
  const ops::Tensor& tensorOut = builder->tensor(output);
  if (tensorOut.rank() > XNN_MAX_TENSOR_DIMS || tensorOut.elementCount() == 0)
    return builder->decline("it has more dimensions than XNNPACK takes");
  if (!quantizationFits(op, operandA, operandB, operandOut))
    return builder->decline("XNNPACK does not take its ratio of scales");
  if (!activationFits(activation, operandOut)) return builder->decline(kOneValue);
  const ValueId valueA = builder->read(a);
  const ValueId valueB = builder->read(b);
  const ValueId valueOut = builder->write(output);
  std::vector<uint32_t> inPlace;
  if (tensorA.dimensions == tensorOut.dimensions) inPlace.push_back(0);
  if (tensorB.dimensions == tensorOut.dimensions) inPlace.push_back(1);

  const xnn_quantization_params quantA = quantizationOf(operandA);
  const xnn_quantization_params quantB = quantizationOf(operandB);
  const xnn_quantization_params quantOut = quantizationOf(operandOut);
  const std::vector<size_t> shapeA = shapeOf(tensorA);
  const std::vector<size_t> shapeB = shapeOf(tensorB);
  const auto createXnn = [=]() -> Result<std::unique_ptr<Kernel>> {
    xnn_operator_t created = nullptr;
    const xnn_status status =
        xnn_create_binary_elementwise_nd(op, type, &quantA, &quantB, &quantOut, 0, &created);
    XnnCalls calls;
    calls.reshape = [shapeA, shapeB](xnn_operator_t o, size_t*, size_t*, pthreadpool_t pool) {
      return xnn_reshape_binary_elementwise_nd(o, shapeA.size(), shapeA.data(), shapeB.size(),
                                               shapeB.data(), pool);
    };
    calls.setup = [valueA, valueB, valueOut](xnn_operator_t o, void*, std::span<void* const> at) {
      return xnn_setup_binary_elementwise_nd(o, at[valueA], at[valueB], at[valueOut]);
    };
    return makeXnnKernel("binary_elementwise_nd", status, created, std::move(calls));
  };

  const bool isWholeA = tensorA.dimensions == tensorOut.dimensions;
  const ops::Tensor& row = isWholeA ? tensorB : tensorA;
  if (op == xnn_binary_add && type == xnn_datatype_fp32 && !inPlace.empty() &&
      isRowOf(row, tensorOut, kFewForLoop)) {
    const ops::ActivationRange range = ops::activationRange(activation);
    F32Add add{.a = valueA, .b = valueB, .sum = valueOut};
    add.columns = row.elementCount();
    add.rows = tensorOut.elementCount() / add.columns;
    add.lowest = range.lowest;
    add.highest = range.highest;
    if (!isWholeA) std::swap(add.a, add.b);
    Node& node = builder->add("own", {valueA, valueB}, {valueOut});
    node.inPlaceInputs = inPlace;
    node.create = [add] {
      return makeF32AddKernel(add);
    };
    if (std::isinf(range.lowest) && std::isinf(range.highest)) node.createOther = createXnn;
    return true;
  }

  if (inPlace.size() == 1) {
    if (auto repeated = repeatedRow(builder, isWholeA ? b : a, tensorOut)) {
      const ValueId whole = isWholeA ? valueA : valueB;
      Node& node = builder->add("xnnpack", {whole}, {valueOut});
      node.inPlaceInputs = {0};
      node.create = [=, row = *std::move(repeated)] {
        return makeRowKernel({op, type, quantA, quantB, quantOut}, row, isWholeA, whole, valueOut);
      };
      addClampInPlace(builder, valueOut, output, activation);
      return true;
    }
  }

  const bool isOwn = op == xnn_binary_add && graph::isQuantized(operandOut.type) && hasByteAdd() &&
                     inPlace.size() == 2;
  Node& node = builder->add(isOwn ? "own" : "xnnpack", {valueA, valueB}, {valueOut});
  node.inPlaceInputs = inPlace;
  node.create = createXnn;
  if (isOwn) {
    const ByteAdd add({quantA.scale, quantA.zero_point}, {quantB.scale, quantB.zero_point},
                      {quantOut.scale, quantOut.zero_point}, type == xnn_datatype_qint8);
    const uint64_t count = tensorOut.elementCount();
    node.create = [=] {
      return makeByteAddKernel(add, count, valueA, valueB, valueOut);
    };
  }
  addClampInPlace(builder, valueOut, output, activation);
  return true;
}

Result<bool> addUnary(PlanBuilder* builder, xnn_unary_operator op, const xnn_unary_params* params,
                      uint32_t input, uint32_t output) {
  Unary unary;
  unary.op = op;
  unary.hasParams = params != nullptr;
  if (params != nullptr) unary.params = *params;
  unary.inputType = datatypeOf(builder->operand(input).type);
  unary.outputType = datatypeOf(builder->operand(output).type);
  if (op != xnn_unary_convert && unary.inputType == xnn_datatype_fp16)
    return builder->decline(kHalf);
  if (unary.inputType == xnn_datatype_invalid || unary.outputType == xnn_datatype_invalid ||
      (op != xnn_unary_convert && unary.inputType != unary.outputType))
    return builder->decline("XNNPACK has no such operator for its types");
  if (!unaryQuantizationFits(op, builder->operand(input), builder->operand(output)))
    return builder->decline("XNNPACK does not take its ratio of scales");
  if (op == xnn_unary_clamp && !clampFits(*params, builder->operand(output)))
    return builder->decline(kOneValue);
  unary.inputQuantization = quantizationOf(builder->operand(input));
  unary.outputQuantization = quantizationOf(builder->operand(output));
  unary.count = builder->tensor(output).elementCount();
  if (unary.count == 0) return false;
  unary.source = builder->read(input);
  unary.destination = builder->write(output);
  addUnaryNode(builder, unary);
  return true;
}

Result<bool> addClamp(PlanBuilder* builder, uint32_t input, uint32_t output,
                      ops::FusedActivation activation) {
  const ops::ActivationRange range = ops::activationRange(activation);
  xnn_unary_params params{};
  params.clamp = {range.lowest, range.highest};
  return addUnary(builder, xnn_unary_clamp, &params, input, output);
}

Result<bool> addSoftmax(PlanBuilder* builder, uint32_t input, uint32_t output, float beta) {
  const graph::Operand& operandIn = builder->operand(input);
  const graph::Operand& operandOut = builder->operand(output);
  const ops::Tensor& tensor = builder->tensor(input);
  if (operandIn.type != operandOut.type || tensor.rank() == 0 || tensor.elementCount() == 0)
    return false;
  const bool isFloat = operandIn.type == OperandType::kTensorFloat32 && beta == 1.0f;
  const size_t channels = tensor.dimensions.back();
  // XNNPACK's uint8 form writes only steps of 1/256. It adds in 32 bits, with 2^23 - 1 for the
  // greatest number of the row, so the sum overflows where many channels are equal.
  constexpr size_t kMostSummed = 512;
  const bool isQuantized = operandIn.type == OperandType::kTensorQuant8Asymm &&
                           operandOut.scale == 0x1.0p-8f && operandOut.zeroPoint == 0 && beta > 0 &&
                           channels <= kMostSummed;
  if (!isFloat && !isQuantized) return false;
  const size_t rows = tensor.elementCount() / channels;
  const float scale = operandIn.scale * beta;
  const float outputScale = operandOut.scale;
  const ValueId source = builder->read(input);
  const ValueId destination = builder->write(output);
  builder->add("xnnpack", {source}, {destination}).create =
      [=]() -> Result<std::unique_ptr<Kernel>> {
    xnn_operator_t op = nullptr;
    const xnn_status status = isFloat ? xnn_create_softmax_nc_f32(0, &op)
                                      : xnn_create_softmax_nc_qu8(scale, 0, outputScale, 0, &op);
    XnnCalls calls;
    calls.reshape = [=](xnn_operator_t o, size_t*, size_t*, pthreadpool_t pool) {
      return isFloat ? xnn_reshape_softmax_nc_f32(o, channels, channels, channels, rows, pool)
                     : xnn_reshape_softmax_nc_qu8(o, channels, channels, channels, rows, pool);
    };
    calls.setup = [=](xnn_operator_t o, void*, std::span<void* const> at) {
      return isFloat ? xnn_setup_softmax_nc_f32(o, static_cast<const float*>(at[source]),
                                                static_cast<float*>(at[destination]))
                     : xnn_setup_softmax_nc_qu8(o, static_cast<const uint8_t*>(at[source]),
                                                static_cast<uint8_t*>(at[destination]));
    };
    return makeXnnKernel("softmax_nc", status, op, std::move(calls));
  };
  return true;
}

}  // namespace hearth::cpu
