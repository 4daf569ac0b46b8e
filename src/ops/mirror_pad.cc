// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/pad.h"
#include "ops/registry.h"
#include "ops/strided_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr int32_t kReflect = 0;    // the border element is not repeated
constexpr int32_t kSymmetric = 1;  // the border element is repeated

Result<PadParameters> parse(const OperationContext& context) {
  HEARTH_ASSIGN(PadParameters parameters, parsePaddings(context, 1));
  HEARTH_ASSIGN(const int32_t mode, context.scalar<int32_t>(2));
  if (mode != kReflect && mode != kSymmetric)
    return fail(ErrorCode::kBadData, "The mode of {} is {}, it must be 0 (reflect) or 1.",
                context.describe(), mode);
  for (size_t i = 0; i < parameters.before.size(); ++i) {
    const int64_t limit = int64_t{context.inputs[0].dimensions[i]} - (mode == kReflect ? 1 : 0);
    for (const uint32_t padding : {parameters.before[i], parameters.after[i]})
      if (padding > limit && padding != 0)
        return fail(ErrorCode::kBadData, "{} adds {} elements to dimension {}, at most {} fit.",
                    context.describe(), padding, i, limit);
  }
  return parameters;
}

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(3, 1));
  HEARTH_TRY(signature.inputTensor(0, kMovableTensors, 0, kMaximumRank));
  HEARTH_TRY(signature.inputTensor(1, kIndexTensors, 2, 2));
  HEARTH_TRY(signature.inputType(2, OperandType::kInt32));
  return signature.outputLike(0, 0);
}

// Fills the margins of one dimension of the output from its interior. The dimensions further in
// are complete already, so that a margin copies whole slabs of `slab` elements.
void mirrorDimension(size_t element, int64_t outer, int64_t size, int64_t before, int64_t after,
                     int64_t slab, int64_t skip, uint8_t* data) {
  const int64_t total = before + size + after;
  for (int64_t o = 0; o < outer; ++o) {
    uint8_t* interior = data + static_cast<size_t>((o * total + before) * slab) * element;
    const auto at = [&](int64_t i) {
      return interior + i * slab * static_cast<int64_t>(element);
    };
    if (before > 0) copyStrided(element, {{before, slab, -slab}, {slab, 1, 1}}, at(skip), at(-1));
    if (after > 0)
      copyStrided(element, {{after, -slab, slab}, {slab, 1, 1}}, at(size - 1 - skip), at(size));
  }
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const PadParameters parameters, parse(context));
  HEARTH_ASSIGN(const int32_t mode, context.scalar<int32_t>(2));
  const Tensor& input = context.inputs[0];
  const Tensor& output = context.outputs[0];
  if (output.elementCount() == 0) return {};
  const size_t element = graph::elementSize(input.type());
  const size_t rank = input.rank();
  const std::vector<int64_t> from = rowMajorStrides(input.dimensions);
  const std::vector<int64_t> to = rowMajorStrides(parameters.dimensions);
  std::vector<CopyDimension> loops;
  int64_t start = 0;
  for (size_t i = 0; i < rank; ++i) {
    loops.push_back({input.dimensions[i], from[i], to[i]});
    start += parameters.before[i] * to[i];
  }
  copyStrided(element, std::move(loops), input.data,
              output.as<uint8_t>() + static_cast<size_t>(start) * element, context.threadPool);
  // Inner dimensions come first. Rows in outer margins, which are still unset, are mirrored as well
  // and overwritten when their own dimension is filled.
  int64_t outer = static_cast<int64_t>(output.elementCount());
  for (size_t i = rank; i-- > 0;) {
    outer /= parameters.dimensions[i];
    if (parameters.before[i] == 0 && parameters.after[i] == 0) continue;
    mirrorDimension(element, outer, input.dimensions[i], parameters.before[i], parameters.after[i],
                    to[i], mode == kReflect ? 1 : 0, output.as<uint8_t>());
  }
  return {};
}

}  // namespace

const OperationDefinition kMirrorPadOperation = {OperationType::kMirrorPad, validate,
                                                 prepareParsedShape<parse>, execute};

}  // namespace hearth::ops
