// SPDX-License-Identifier: Apache-2.0
// REAL, IMAG and COMPLEX_ABS of the extension: the real part, the imaginary part or the magnitude
// of each element. Input: TENSOR_COMPLEX64. Output: TENSOR_FLOAT32 of the same shape.
#include <cmath>

#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

constexpr uint64_t kGrain = 1 << 14;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 1));
  HEARTH_TRY(signature.inputType(0, OperandType::kTensorComplex64));
  return signature.outputType(0, OperandType::kTensorFloat32);
}

Status parse(const OperationContext& context) {
  return requireArguments(context, 1, 1);
}

// `function` takes the two parts.
template <typename Function>
Status compute(const OperationContext& context, const Function& function) {
  const float* parts = context.inputs[0].as<float>();
  float* output = context.outputs[0].as<float>();
  threads::forRanges(context.threadPool, context.outputs[0].elementCount(), kGrain,
                     [&](uint64_t begin, uint64_t end) {
                       for (uint64_t i = begin; i < end; ++i)
                         output[i] = function(parts[2 * i], parts[2 * i + 1]);
                     });
  return {};
}

Status executeReal(OperationContext& context) {
  return compute(context, [](float real, float) { return real; });
}

Status executeImag(OperationContext& context) {
  return compute(context, [](float, float imaginary) { return imaginary; });
}

// In double the squares of float32 numbers neither overflow nor become 0.
Status executeComplexAbs(OperationContext& context) {
  return compute(context, [](float real, float imaginary) {
    if (std::isinf(real) || std::isinf(imaginary)) return INFINITY;
    const double square =
        static_cast<double>(real) * real + static_cast<double>(imaginary) * imaginary;
    return static_cast<float>(std::sqrt(square));
  });
}

}  // namespace

const OperationDefinition kRealOperation = {OperationType::kReal, validate, prepareLikeInput<parse>,
                                            executeReal};
const OperationDefinition kImagOperation = {OperationType::kImag, validate, prepareLikeInput<parse>,
                                            executeImag};
const OperationDefinition kComplexAbsOperation = {OperationType::kComplexAbs, validate,
                                                  prepareLikeInput<parse>, executeComplexAbs};

}  // namespace hearth::ops
