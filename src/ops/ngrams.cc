// SPDX-License-Identifier: Apache-2.0
// NGRAMS of the extension, the custom operator tftext:Ngrams: each `width` neighbouring strings of
// a row, joined. Inputs: the width, a constant INT32; the separator, a constant TENSOR_QUANT8_ASYMM
// of rank 1, omitted for none; the strings, TENSOR_STRING; then row splits (TENSOR_INT64), where
// the strings are the rows of a ragged tensor one behind the other. Outputs: the joined strings,
// then as many row splits. Without row splits the rows are those of the last dimension.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "memory/string_heap.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

using memory::StringHandle;

constexpr size_t kWidth = 0;
constexpr size_t kSeparator = 1;
constexpr size_t kStrings = 2;
constexpr size_t kFirstSplits = 3;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(kFirstSplits, kFirstSplits + kMaximumRank, 1, 1 + kMaximumRank));
  if (signature.inputCount() - kFirstSplits != signature.outputCount() - 1)
    return fail(ErrorCode::kBadData, "{} takes {} row splits and makes {}.", signature.describe(),
                signature.inputCount() - kFirstSplits, signature.outputCount() - 1);
  HEARTH_TRY(signature.inputType(kWidth, OperandType::kInt32));
  HEARTH_TRY(signature.optionalInputType(kSeparator, OperandType::kTensorQuant8Asymm));
  HEARTH_TRY(signature.inputTensor(kStrings, OperandType::kTensorString, 1, kMaximumRank));
  HEARTH_TRY(signature.outputType(0, OperandType::kTensorString));
  for (size_t i = kFirstSplits; i < signature.inputCount(); ++i) {
    HEARTH_TRY(signature.inputTensor(i, OperandType::kTensorInt64, 1, 1));
    HEARTH_TRY(signature.outputType(i - kStrings, OperandType::kTensorInt64));
  }
  return {};
}

Result<int64_t> widthOf(const OperationContext& context) {
  HEARTH_ASSIGN(const int32_t width, context.scalar<int32_t>(kWidth));
  if (width >= 1) return width;
  return fail(ErrorCode::kBadData, "{} joins {} strings, it must join 1 or more.",
              context.describe(), width);
}

// How many windows a row has.
int64_t windowsOf(int64_t length, int64_t width) {
  return std::max<int64_t>(length - width + 1, 0);
}

// Calls visit(first, length) for each row.
template <typename Visit>
Status forEachRow(const OperationContext& context, const Visit& visit) {
  const Tensor& strings = context.inputs[kStrings];
  const auto count = static_cast<int64_t>(strings.elementCount());
  if (context.inputs.size() == kFirstSplits) {
    const int64_t length = strings.dimensions.back();
    for (int64_t first = 0; first < count; first += length) HEARTH_TRY(visit(first, length));
    return {};
  }
  const Tensor& splits = context.inputs.back();
  const auto* const begins = splits.as<int64_t>();
  for (uint64_t i = 0; i + 1 < splits.elementCount(); ++i) {
    if (begins[i] < 0 || begins[i] > begins[i + 1] || begins[i + 1] > count)
      return fail(ErrorCode::kBadData, "Row {} of {} has the elements [{}, {}) of {}.", i,
                  context.describe(), begins[i], begins[i + 1], count);
    HEARTH_TRY(visit(begins[i], begins[i + 1] - begins[i]));
  }
  return {};
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, context.outputs.size()));
  HEARTH_TRY(requireRank(context, kStrings, 1, kMaximumRank));
  HEARTH_ASSIGN(const int64_t width, widthOf(context));
  Dimensions dimensions = context.inputs[kStrings].dimensions;
  if (context.inputs.size() == kFirstSplits) {
    dimensions.back() = static_cast<uint32_t>(windowsOf(dimensions.back(), width));
    return context.setOutputDimensions(0, std::move(dimensions));
  }
  HEARTH_TRY(requireRank(context, kStrings, 1, 1));
  for (size_t i = kFirstSplits; i < context.inputs.size(); ++i)
    HEARTH_TRY(context.setOutputDimensions(i - kStrings, context.inputs[i].dimensions));
  if (context.inputs.back().data == nullptr)
    return needsRuntimeValue(context, context.inputs.size() - 1);
  int64_t windows = 0;
  HEARTH_TRY(forEachRow(context, [&](int64_t, int64_t length) -> Status {
    windows += windowsOf(length, width);
    return {};
  }));
  HEARTH_ASSIGN(const uint32_t size, toDimension(context, windows));
  return context.setOutputDimensions(0, {size});
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const int64_t width, widthOf(context));
  const Tensor& strings = context.inputs[kStrings];
  const auto* const handles = strings.as<StringHandle>();
  std::string_view separator;
  if (context.hasInput(kSeparator)) {
    const Tensor& bytes = context.inputs[kSeparator];
    separator = {bytes.as<const char>(), bytes.elementCount()};
  }
  const bool isRagged = context.inputs.size() > kFirstSplits;
  int64_t* ends = isRagged ? context.outputs.back().as<int64_t>() : nullptr;
  if (isRagged && context.outputs.back().dimensions[0] != 0) *ends = 0;
  auto* target = context.outputs[0].as<StringHandle>();
  int64_t windows = 0;
  HEARTH_TRY(forEachRow(context, [&](int64_t first, int64_t length) -> Status {
    std::vector<std::string> texts;
    for (int64_t i = 0; i < length; ++i) {
      HEARTH_ASSIGN(std::string text, memory::readString(handles[first + i]));
      texts.push_back(std::move(text));
    }
    for (int64_t i = 0; i < windowsOf(length, width); ++i) {
      std::string joined;
      for (int64_t k = 0; k < width; ++k) {
        if (k != 0) joined += separator;
        joined += texts[i + k];
      }
      HEARTH_ASSIGN(*target, memory::putString(joined));
      ++target;
      ++windows;
    }
    if (isRagged) *++ends = windows;
    return {};
  }));
  // The outer dimensions keep their rows.
  for (size_t i = kFirstSplits; i + 1 < context.inputs.size(); ++i)
    std::copy_n(context.inputs[i].as<int64_t>(), context.inputs[i].elementCount(),
                context.outputs[i - kStrings].as<int64_t>());
  return {};
}

}  // namespace

const OperationDefinition kNgramsOperation = {OperationType::kNgrams, validate, prepare, execute};

}  // namespace hearth::ops
