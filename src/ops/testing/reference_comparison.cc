// SPDX-License-Identifier: Apache-2.0
#include "ops/testing/reference_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/reference/elements.h"
#include "ops/reference/kernels.h"

namespace hearth::ops {
namespace {

// The largest difference between real numbers, relative to the greatest of them.
double toleranceOf(OperandType type) {
  return type == OperandType::kTensorFloat16 ? 2e-3 : 2e-5;
}

bool isSame(double a, double b, double tolerance) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance;
}

Status compareOutput(const OperationContext& context, size_t number, const Tensor& made,
                     const Tensor& expected) {
  const OperandType type = made.type();
  const bool isComplex = type == OperandType::kTensorComplex64;
  // Both parts of complex numbers are compared as float32.
  const int64_t count = reference::countOf(made.dimensions) * (isComplex ? 2 : 1);
  const bool areSteps =
      graph::isQuantized(type) || (type == OperandType::kTensorInt16 && made.operand->scale > 0);
  if (!areSteps && !reference::isFloat(type) && !isComplex) {
    const size_t bytes = static_cast<size_t>(count) * graph::elementSize(type);
    if (bytes == 0 || std::memcmp(made.data, expected.data, bytes) == 0) return {};
    return fail(ErrorCode::kOpFailed,
                "Output {} of {} has other bytes than its reference kernel's.", number,
                context.describe());
  }
  const auto valueAt = [&](const Tensor& tensor, int64_t place) -> double {
    if (isComplex) return reference::loadAs<float>(tensor, place);
    return areSteps ? reference::storedAt(tensor, place) : reference::realAt(tensor, place);
  };
  double greatest = 0;
  for (int64_t i = 0; i < count; ++i)
    if (std::isfinite(valueAt(expected, i)))
      greatest = std::max(greatest, std::abs(valueAt(expected, i)));
  const double tolerance = areSteps ? 1.0 : toleranceOf(type) * greatest;
  for (int64_t i = 0; i < count; ++i)
    if (!isSame(valueAt(made, i), valueAt(expected, i), tolerance))
      return fail(ErrorCode::kOpFailed,
                  "Element {} of output {} of {} is {}, its reference kernel says {}.", i, number,
                  context.describe(), valueAt(made, i), valueAt(expected, i));
  return {};
}

}  // namespace

Status compareWithReference(const OperationContext& context, const Status& status) {
  const reference::Kernel kernel = reference::findKernel(context.operation->type);
  if (kernel == nullptr) return {};
  OperationContext other = context;
  std::vector<std::vector<uint8_t>> buffers;
  for (Tensor& output : other.outputs) {
    buffers.emplace_back(output.elementCount() * graph::elementSize(output.type()), uint8_t{0x55});
    output.data = buffers.back().data();
  }
  const Status judged = kernel(other);
  if (judged.has_value() != status.has_value() ||
      (!judged && judged.error().code() != status.error().code()))
    return fail(ErrorCode::kOpFailed, "The reference kernel of {} ends with: {}",
                context.describe(), judged ? "success" : judged.error().toString());
  for (size_t i = 0; i < context.outputs.size() && judged; ++i)
    if (context.outputs[i].isPresent)
      HEARTH_TRY(compareOutput(context, i, context.outputs[i], other.outputs[i]));
  return {};
}

}  // namespace hearth::ops
