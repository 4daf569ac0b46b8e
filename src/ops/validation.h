// SPDX-License-Identifier: Apache-2.0
// Helpers for the signature checks in OperationDefinition::check and the argument checks in
// prepare. All are pure functions of their arguments; every error is kBadData unless it says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/result.h"
#include "graph/model.h"
#include "ops/operation.h"

namespace hearth::ops {

// Largest rank of operations that are not element-wise and have no limit of their own. No tensor of
// 2^32 bytes has more dimensions other than 1.
inline constexpr size_t kMaximumRank = 32;

// A set of operand types, built with `|`: kTensorInt32 | kTensorFloat32.
class TypeSet {
 public:
  constexpr TypeSet(OperandType type) : bits_(bitOf(type)) {}  // implicit: `|` takes plain types

  constexpr bool contains(OperandType type) const { return (bits_ & bitOf(type)) != 0; }
  friend constexpr TypeSet operator|(TypeSet a, TypeSet b);

  // "FLOAT32 or TENSOR_{FLOAT32,FLOAT16}" for messages: several tensor types share the prefix.
  std::string describe() const;

 private:
  // NNAPI's 16 types, then those of hearth.tflite; 0 for unknown codes.
  static constexpr uint64_t bitOf(OperandType type) {
    const int32_t code = static_cast<int32_t>(type);
    if (code >= 0 && code < 16) return uint64_t{1} << code;
    const int32_t number = code - graph::tfliteExtensionCode(0);
    return number >= 0 && number < 32 ? uint64_t{1} << (16 + number) : 0;
  }
  uint64_t bits_ = 0;
};

constexpr TypeSet operator|(TypeSet a, TypeSet b) {
  a.bits_ |= b.bits_;
  return a;
}
constexpr TypeSet operator|(OperandType a, OperandType b) {
  return TypeSet(a) | TypeSet(b);
}

inline constexpr TypeSet kFloatTensors = OperandType::kTensorFloat32 | OperandType::kTensorFloat16;
// The two 8-bit types with a zero point.
inline constexpr TypeSet kQuant8Tensors =
    OperandType::kTensorQuant8Asymm | OperandType::kTensorQuant8AsymmSigned;

// The arguments of one operation while its signature is validated. A view: model, subgraph and
// operation must outlive it. Unknown ranks and dimensions pass every check. An argument counts as
// omitted when the list is too short or its lifetime is kNoValue.
class Signature {
 public:
  Signature(const graph::Model& model, const graph::Subgraph& subgraph,
            const graph::Operation& operation)
      : model_(model), subgraph_(subgraph), operation_(operation) {}

  const graph::Model& model() const { return model_; }
  const graph::Subgraph& subgraph() const { return subgraph_; }
  const graph::Operation& operation() const { return operation_; }
  OperationType type() const { return operation_.type; }
  size_t inputCount() const { return operation_.inputs.size(); }
  size_t outputCount() const { return operation_.outputs.size(); }
  bool hasInput(size_t index) const { return index < inputCount() && input(index).hasValue(); }
  // index < inputCount() or outputCount(). The operand of an omitted argument has its type too.
  const graph::Operand& input(size_t index) const {
    return subgraph_.operands[operation_.inputs[index]];
  }
  const graph::Operand& output(size_t index) const {
    return subgraph_.operands[operation_.outputs[index]];
  }
  // False for an index past the end.
  bool isInputOfType(size_t index, TypeSet types) const {
    return index < inputCount() && types.contains(input(index).type);
  }

  Status counts(size_t inputs, size_t outputs) const { return counts(inputs, inputs, outputs); }
  Status counts(size_t minInputs, size_t maxInputs, size_t outputs) const {
    return counts(minInputs, maxInputs, outputs, outputs);
  }
  Status counts(size_t minInputs, size_t maxInputs, size_t minOutputs, size_t maxOutputs) const;

  // Required inputs: fail when omitted.
  Status inputType(size_t index, TypeSet allowed) const;
  Status inputTypeLike(size_t index, size_t otherInput) const;
  // As above, and pass when omitted.
  Status optionalInputType(size_t index, TypeSet allowed) const;
  Status optionalInputTypeLike(size_t index, size_t otherInput) const;
  // NNAPI gives float parameters the precision of the data: FLOAT16 beside a TENSOR_FLOAT16 input
  // `dataInput`, FLOAT32 beside all others.
  Status floatScalar(size_t index, size_t dataInput) const;

  // inputType() and inputRank().
  Status inputTensor(size_t index, TypeSet allowed, size_t minimumRank, size_t maximumRank) const {
    HEARTH_TRY(inputType(index, allowed));
    return inputRank(index, minimumRank, maximumRank);
  }

  Status outputType(size_t index, TypeSet allowed) const;
  Status outputTypeLike(size_t index, size_t otherInput) const;
  // Type and quantisation.
  Status outputLike(size_t index, size_t otherInput) const {
    HEARTH_TRY(outputTypeLike(index, otherInput));
    return outputQuantizationLike(index, otherInput);
  }

  // Rank between minimum and maximum; omitted inputs pass.
  Status inputRank(size_t index, size_t minimum, size_t maximum) const;
  Status outputRank(size_t index, size_t minimum, size_t maximum) const;

  // Equal zero point and scale (1e-5 relative); passes when the types have no quantisation.
  Status sameQuantization(size_t inputA, size_t inputB) const;
  Status outputQuantizationLike(size_t output, size_t input) const;
  // The exact quantisation that NNAPI demands of some outputs.
  Status outputQuantization(size_t index, float scale, int32_t zeroPoint) const;

  // "CONV_2D \"name\"" for messages.
  std::string describe() const;

 private:
  const graph::Model& model_;
  const graph::Subgraph& subgraph_;
  const graph::Operation& operation_;
};

// Equal zero points and scales that differ by no more than 1e-5 relative (converters round).
bool isSameQuantization(const graph::Operand& a, const graph::Operand& b);

// For prepare: the first `inputs` inputs and the first `outputs` outputs are not omitted, and the
// shapes of all inputs that are present are known. The error for an unknown shape is that of
// needsRuntimeValue(). Call it before anything else in prepare.
Status requireArguments(const OperationContext& context, size_t inputs, size_t outputs);

// For prepare: the input has a rank between minimum and maximum.
Status requireRank(const OperationContext& context, size_t input, size_t minimum, size_t maximum);

// For prepare: the input has one element.
Status requireOneElement(const OperationContext& context, size_t input);

// For prepare: the input has these dimensions; omitted inputs pass.
Status requireShape(const OperationContext& context, size_t input, const Dimensions& expected);

// The prepare of operations whose output has the shape of input 0; `parse` checks the rest.
template <auto parse>
Status prepareLikeInput(OperationContext& context) {
  HEARTH_TRY(parse(context));
  return context.setOutputDimensions(0, context.inputs[0].dimensions);
}

// The prepare of operations whose only output has the shape that `parse` returns as `dimensions`.
template <auto parse>
Status prepareParsedShape(OperationContext& context) {
  HEARTH_ASSIGN(auto parameters, parse(context));
  return context.setOutputDimensions(0, std::move(parameters.dimensions));
}

// Value of a FLOAT32 or FLOAT16 scalar input. Errors as OperationContext::scalar().
Result<float> floatScalar(const OperationContext& context, size_t index);
Result<float> floatScalar(const OperationContext& context, size_t index, float fallback);

// The axis that a model means: negative values count from the end. kBadData outside [-rank, rank).
Result<size_t> resolveAxis(const OperationContext& context, int64_t axis, size_t rank);

}  // namespace hearth::ops
