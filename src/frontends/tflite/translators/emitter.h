// SPDX-License-Identifier: Apache-2.0
// Emits operations, each of which writes a new operand, for translators that compose many.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "frontends/tflite/translators/custom_options.h"
#include "frontends/tflite/translators/operator_view.h"

namespace hearth::tflite {

// A short-lived view of an operator.
class Emitter {
 public:
  explicit Emitter(OperatorView& view) : view_(view) {}

  // The result has the type of the first argument.
  Result<uint32_t> plain(graph::OperationType type, std::vector<uint32_t> inputs,
                         graph::Dimensions result) {
    const graph::OperandType resultType = view_.operand(inputs[0]).type;
    return view_.emitNew(type, std::move(inputs), std::move(result), resultType);
  }
  // ADD, SUB, MUL or DIV.
  Result<uint32_t> arithmetic(graph::OperationType type, uint32_t a, uint32_t b,
                              graph::Dimensions result) {
    HEARTH_ASSIGN(const uint32_t none, view_.scalar(kFuseNone));
    return plain(type, {a, b, none}, std::move(result));
  }
  // `part` of the way from `from` to `to`.
  Result<uint32_t> between(uint32_t from, uint32_t to, uint32_t part,
                           const graph::Dimensions& result) {
    HEARTH_ASSIGN(const uint32_t way, arithmetic(graph::OperationType::kSub, to, from, result));
    HEARTH_ASSIGN(const uint32_t gone, arithmetic(graph::OperationType::kMul, way, part, result));
    return arithmetic(graph::OperationType::kAdd, from, gone, result);
  }
  Result<uint32_t> reshape(uint32_t values, const graph::Dimensions& result) {
    HEARTH_ASSIGN(const uint32_t shape, ints(result));
    return plain(graph::OperationType::kReshape, {values, shape}, result);
  }
  Result<uint32_t> slice(uint32_t values, const graph::Dimensions& begin,
                         const graph::Dimensions& size) {
    HEARTH_ASSIGN(const uint32_t beginOperand, ints(begin));
    HEARTH_ASSIGN(const uint32_t sizeOperand, ints(size));
    return plain(graph::OperationType::kSlice, {values, beginOperand, sizeOperand}, size);
  }
  // Rows of a matrix.
  Result<uint32_t> rows(uint32_t matrix, std::span<const int32_t> which) {
    HEARTH_ASSIGN(const uint32_t axis, view_.scalar(0));
    HEARTH_ASSIGN(const uint32_t indices, view_.builder().intTensor(which));
    return plain(graph::OperationType::kGather, {matrix, axis, indices},
                 {static_cast<uint32_t>(which.size()), view_.operand(matrix).dimensions[1]});
  }
  // A product of matrices, the second of which may be transposed.
  Result<uint32_t> product(uint32_t a, uint32_t b, bool isTransposed) {
    HEARTH_ASSIGN(const uint32_t no, view_.scalar(false));
    HEARTH_ASSIGN(const uint32_t second, view_.scalar(isTransposed));
    const uint32_t columns = view_.operand(b).dimensions[isTransposed ? 0 : 1];
    return plain(graph::OperationType::kBatchMatmul, {a, b, no, second},
                 {view_.operand(a).dimensions[0], columns});
  }
  Result<uint32_t> join(std::vector<uint32_t> parts, int32_t axis, graph::Dimensions result) {
    HEARTH_ASSIGN(const uint32_t axisOperand, view_.scalar(axis));
    parts.push_back(axisOperand);
    return plain(graph::OperationType::kConcatenation, std::move(parts), std::move(result));
  }
  // The least or the largest of each column of a matrix, one row.
  Result<uint32_t> extreme(graph::OperationType type, uint32_t matrix) {
    HEARTH_ASSIGN(const uint32_t axis, view_.builder().intTensor(std::array{0}));
    HEARTH_ASSIGN(const uint32_t keepsRank, view_.scalar(true));
    return plain(type, {matrix, axis, keepsRank}, {1, view_.operand(matrix).dimensions[1]});
  }
  Result<uint32_t> row(std::array<float, 2> values) { return floatConstant(view_, {1, 2}, values); }

 private:
  Result<uint32_t> ints(const graph::Dimensions& dimensions) {
    const std::vector<int32_t> sizes(dimensions.begin(), dimensions.end());
    return view_.builder().intTensor(sizes);
  }

  OperatorView& view_;
};

}  // namespace hearth::tflite
