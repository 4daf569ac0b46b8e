// SPDX-License-Identifier: Apache-2.0
// Reductions along axes, and searches along one axis.
#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

Status translateReduce(OperatorView& view, OperationType type) {
  const bool keep = view.options<schema::ReducerOptions>().keep_dims();
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t axes, view.intTensorInput(1));
  if (!view.operand(axes).isConstant()) {
    HEARTH_ASSIGN(const uint32_t output, view.output(0));
    view.builder().forgetUnsaidRank(output);
  }
  // MEAN takes an INT32, since it is older than the scalar BOOL.
  HEARTH_ASSIGN(const uint32_t keepDims, type == OperationType::kMean
                                             ? view.scalar(static_cast<int32_t>(keep))
                                             : view.scalar(keep));
  return view.emit(type, {input, axes, keepDims});
}

Status translateArg(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const int32_t axis, view.constantInt(1));
  HEARTH_ASSIGN(const uint32_t axisOperand, view.scalar(axis));
  HEARTH_ASSIGN(const uint32_t target, view.output(0));
  const bool isWide = view.operand(target).type == OperandType::kTensorInt64;
  if (isWide)
    type = type == OperationType::kArgmax ? OperationType::kArgmax64 : OperationType::kArgmin64;
  return view.emit(type, {input, axisOperand}, {target});
}

Status translateCumsum(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::CumsumOptions>();
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const int32_t axis, view.constantInt(1));
  HEARTH_ASSIGN(const uint32_t axisOperand, view.scalar(axis));
  HEARTH_ASSIGN(const uint32_t exclusive, view.scalar(options.exclusive()));
  HEARTH_ASSIGN(const uint32_t reverse, view.scalar(options.reverse()));
  return view.emit(type, {input, axisOperand, exclusive, reverse});
}

Status translateTopk(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(uint32_t countOperand, view.intTensorInput(1));
  if (view.operand(countOperand).isConstant()) {
    HEARTH_ASSIGN(const int32_t count, view.constantInt(1));
    HEARTH_ASSIGN(countOperand, view.scalar(count));
  }
  HEARTH_ASSIGN(const uint32_t values, view.output(0));
  HEARTH_ASSIGN(const uint32_t indices, view.output(1));
  if (view.operand(indices).type != OperandType::kTensorInt16)
    return view.emit(type, {input, countOperand}, {values, indices});
  HEARTH_ASSIGN(const uint32_t wide, view.builder().temporaryLike(indices));
  view.builder().operand(wide).type = OperandType::kTensorInt32;
  HEARTH_TRY(view.emit(type, {input, countOperand}, {values, wide}));
  return view.emit(OperationType::kCast, {wide}, {indices});
}

}  // namespace

std::span<const TranslatorEntry> reduceTranslators() {
  static constexpr TranslatorEntry kTranslators[] = {
      {BuiltinOperator::MEAN, translateReduce, OperationType::kMean},
      {BuiltinOperator::SUM, translateReduce, OperationType::kReduceSum},
      {BuiltinOperator::REDUCE_PROD, translateReduce, OperationType::kReduceProd},
      {BuiltinOperator::REDUCE_MAX, translateReduce, OperationType::kReduceMax},
      {BuiltinOperator::REDUCE_MIN, translateReduce, OperationType::kReduceMin},
      {BuiltinOperator::REDUCE_ANY, translateReduce, OperationType::kReduceAny},
      {BuiltinOperator::REDUCE_ALL, translateReduce, OperationType::kReduceAll},
      {BuiltinOperator::ARG_MAX, translateArg, OperationType::kArgmax},
      {BuiltinOperator::ARG_MIN, translateArg, OperationType::kArgmin},
      {BuiltinOperator::CUMSUM, translateCumsum, OperationType::kCumsum},
      {BuiltinOperator::SEGMENT_SUM, translatePlain<2>, OperationType::kSegmentSum},
      {BuiltinOperator::UNSORTED_SEGMENT_PROD, translatePlain<3>,
       OperationType::kUnsortedSegmentProd},
      {BuiltinOperator::UNSORTED_SEGMENT_MAX, translatePlain<3>,
       OperationType::kUnsortedSegmentMax},
      {BuiltinOperator::UNSORTED_SEGMENT_SUM, translatePlain<3>,
       OperationType::kUnsortedSegmentSum},
      {BuiltinOperator::UNSORTED_SEGMENT_MIN, translatePlain<3>,
       OperationType::kUnsortedSegmentMin},
      {BuiltinOperator::TOPK_V2, translateTopk, OperationType::kTopkV2},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
