// SPDX-License-Identifier: Apache-2.0
#include "ops/pad.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/vector_dispatch.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/strided_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

// The value is a scalar for NNAPI's own types; a tensor of one element of the input's type works
// for all.
TypeSet padValueTypes(OperandType type) {
  if (type == OperandType::kTensorFloat32) return OperandType::kFloat32 | TypeSet(type);
  if (type == OperandType::kTensorFloat16) return OperandType::kFloat16 | TypeSet(type);
  if (type == OperandType::kTensorInt32 || graph::isQuantized(type))
    return OperandType::kInt32 | TypeSet(type);
  return type;
}

// The pad value of a quantised input is an INT32 in the input's steps; that of any other input has
// its type.
Status readPadValue(const OperationContext& context, PadParameters* parameters) {
  const OperandType type = context.inputs[0].type();
  const Tensor& value = context.inputs[2];
  HEARTH_TRY(requireOneElement(context, 2));
  if (value.data == nullptr) return needsRuntimeValue(context, 2);
  if (value.type() == OperandType::kInt32 && graph::isQuantized(type)) {
    const int32_t number = *value.as<int32_t>();
    const auto [lowest, highest] = type == OperandType::kTensorQuant8Asymm ? std::pair(0, 255)
                                   : graph::elementSize(type) == 1         ? std::pair(-128, 127)
                                                                   : std::pair(-32768, 65535);
    if (number < lowest || number > highest)
      return fail(ErrorCode::kBadData, "The pad value {} of {} is outside [{}, {}].", number,
                  context.describe(), lowest, highest);
    std::memcpy(parameters->value.data(), &number, graph::elementSize(type));
    return {};
  }
  std::memcpy(parameters->value.data(), value.data, graph::elementSize(type));
  return {};
}

Status validate(const Signature& signature) {
  const bool hasValue = signature.type() == OperationType::kPadV2;
  HEARTH_TRY(signature.counts(hasValue ? 3 : 2, 1));
  HEARTH_TRY(signature.inputTensor(0, kMovableTensors, 0, kMaximumRank));
  HEARTH_TRY(signature.inputTensor(1, kIndexTensors, 2, 2));
  if (hasValue) HEARTH_TRY(signature.inputType(2, padValueTypes(signature.input(0).type)));
  return signature.outputLike(0, 0);
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(PadParameters parameters, parsePaddings(context, 1));
  // The output's shape does not depend on the value, which may be known only at run time.
  if (context.operation->type == OperationType::kPadV2 && context.inputs[2].data != nullptr)
    HEARTH_TRY(parsePad(context));
  return context.setOutputDimensions(0, std::move(parameters.dimensions));
}

// Writes each byte of the output once: the padding around each slice of the input, and the slice.
class PaddedCopy {
 public:
  PaddedCopy(const PadParameters& parameters, const Tensor& input)
      : parameters_(parameters), input_(input.dimensions) {
    const size_t rank = input_.size();
    element_ = graph::elementSize(input.type());
    last_ = rank;
    for (size_t d = 0; d < rank; ++d)
      if (isPadded(d)) last_ = d;
    from_.assign(rank + 1, element_);
    to_.assign(rank + 1, element_);
    for (size_t d = rank; d-- > 0;) {
      from_[d] = from_[d + 1] * input_[d];
      to_[d] = to_[d + 1] * parameters_.dimensions[d];
    }
  }

  // Bytes of the output along the last dimension that is padded; 0 if none is.
  uint64_t rowBytes() const { return last_ < input_.size() ? to_[last_] : 0; }

  void run(const uint8_t* source, uint8_t* target, threads::ThreadPool* pool) const {
    // Finds the first dimension that can be divided; the dimensions before it are neither padded
    // nor larger than 1.
    size_t d = 0;
    while (d < last_ && !isPadded(d) && input_[d] == 1) ++d;
    const uint64_t before = parameters_.before[d];
    if (d == last_) return copySlices(d, source, target);
    threads::forRanges(pool, parameters_.dimensions[d], threads::grainOf(to_[d + 1]),
                       [&](uint64_t begin, uint64_t end) {
                         for (uint64_t i = begin; i < end; ++i) {
                           uint8_t* slice = target + i * to_[d + 1];
                           if (i < before || i >= before + input_[d])
                             fill(slice, to_[d + 1]);
                           else
                             copySlices(d + 1, source + (i - before) * from_[d + 1], slice);
                         }
                       });
  }

 private:
  bool isPadded(size_t d) const { return parameters_.before[d] != 0 || parameters_.after[d] != 0; }

  void fill(uint8_t* target, uint64_t bytes) const {
    fillElements(element_, parameters_.value.data(), target, bytes / element_);
  }

  // Writes one slice of the output: dimension `d` and all after it.
  void copySlices(size_t d, const uint8_t* source, uint8_t* target) const {
    const uint64_t before = parameters_.before[d] * to_[d + 1];
    const uint64_t size = input_[d];
    fill(target, before);
    target += before;
    if (d == last_) {
      std::memcpy(target, source, from_[d]);
    } else if (d + 1 == last_ && areRowsInChunks()) {
      copyRows(size, source, target);
    } else {
      for (uint64_t i = 0; i < size; ++i)
        copySlices(d + 1, source + i * from_[d + 1], target + i * to_[d + 1]);
    }
    fill(target + size * to_[d + 1], parameters_.after[d] * to_[d + 1]);
  }

  // Rows of a few channels are common, and calls for so few bytes take longer than the copying.
  static constexpr uint64_t kChunk = 16;
  bool areRowsInChunks() const {
    return kChunk % element_ == 0 && from_[last_] % kChunk == 0 && to_[last_] % kChunk == 0 &&
           parameters_.before[last_] * to_[last_ + 1] % kChunk == 0;
  }

  // Writes `count` slices of the last dimension that is padded.
  void copyRows(uint64_t count, const uint8_t* source, uint8_t* target) const {
    std::array<uint8_t, kChunk> value;
    fill(value.data(), kChunk);
    const uint64_t before = parameters_.before[last_] * to_[last_ + 1];
    const uint64_t row = to_[last_];
    const uint64_t middle = from_[last_];
    base::onWidestVectors([=]() HEARTH_INLINE {
      const uint8_t* from = source;
      uint8_t* to = target;
      for (uint64_t i = 0; i < count; ++i, from += middle, to += row) {
        for (uint64_t k = 0; k < before; k += kChunk) std::memcpy(to + k, value.data(), kChunk);
        for (uint64_t k = 0; k < middle; k += kChunk)
          std::memcpy(to + before + k, from + k, kChunk);
        for (uint64_t k = before + middle; k < row; k += kChunk)
          std::memcpy(to + k, value.data(), kChunk);
      }
    });
  }

  const PadParameters& parameters_;
  const Dimensions& input_;
  size_t element_ = 1;
  size_t last_ = 0;             // the last dimension that is padded
  std::vector<uint64_t> from_;  // bytes of the input along each dimension and all after it
  std::vector<uint64_t> to_;    // the same for the output
};

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const PadParameters parameters, parsePad(context));
  const Tensor& input = context.inputs[0];
  const Tensor& output = context.outputs[0];
  const size_t element = graph::elementSize(input.type());
  // For short rows the strided copy, whose loops know their size, is faster.
  constexpr uint64_t kShortRow = 64;
  const PaddedCopy copy(parameters, input);
  if (input.elementCount() != 0 && copy.rowBytes() > kShortRow) {
    copy.run(input.as<uint8_t>(), output.as<uint8_t>(), context.threadPool);
    return {};
  }
  fillElements(element, parameters.value.data(), output.data, output.elementCount());
  const std::vector<int64_t> begin(parameters.before.begin(), parameters.before.end());
  copyBlock(element, input.dimensions, input.data, parameters.dimensions, begin, output.data,
            context.threadPool);
  return {};
}

}  // namespace

Result<PadParameters> parsePaddings(const OperationContext& context, size_t input) {
  HEARTH_TRY(requireArguments(context, context.inputs.size(), 1));
  const Dimensions& dimensions = context.inputs[0].dimensions;
  HEARTH_ASSIGN(const std::vector<int64_t> values, context.intVector(input));
  if (values.size() != 2 * dimensions.size())
    return fail(ErrorCode::kBadData, "{} has {} paddings for an input of rank {}, it needs {}.",
                context.describe(), values.size(), dimensions.size(), 2 * dimensions.size());
  PadParameters parameters;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    HEARTH_ASSIGN(const uint32_t before, toDimension(context, values[2 * i]));
    HEARTH_ASSIGN(const uint32_t after, toDimension(context, values[2 * i + 1]));
    HEARTH_ASSIGN(const uint32_t size,
                  toDimension(context, int64_t{dimensions[i]} + before + after));
    parameters.before.push_back(before);
    parameters.after.push_back(after);
    parameters.dimensions.push_back(size);
  }
  return parameters;
}

Result<PadParameters> parsePad(const OperationContext& context) {
  HEARTH_ASSIGN(PadParameters parameters, parsePaddings(context, 1));
  if (context.operation->type == OperationType::kPadV2) {
    HEARTH_TRY(readPadValue(context, &parameters));
  } else if (graph::isQuantized(context.inputs[0].type())) {
    const int32_t zeroPoint = context.inputs[0].operand->zeroPoint;
    std::memcpy(parameters.value.data(), &zeroPoint, graph::elementSize(context.inputs[0].type()));
  }
  return parameters;
}

const OperationDefinition kPadOperation = {OperationType::kPad, validate, prepare, execute};
const OperationDefinition kPadV2Operation = {OperationType::kPadV2, validate, prepare, execute};

}  // namespace hearth::ops
