// SPDX-License-Identifier: Apache-2.0
// Custom operations on text, of tensorflow-text and of MediaPipe.
#include <string_view>
#include <utility>
#include <vector>

#include "frontends/tflite/reader/text.h"
#include "frontends/tflite/translators/custom_options.h"
#include "frontends/tflite/translators/translators.h"
#include "ops/ragged_tensor_to_tensor.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using ops::RowPartition;
using schema::BuiltinOperator;

// Its outputs, of shapes that only a run knows, whatever the file says: the first with these
// dimensions, the others of rank 1. kBadData for none.
Result<std::vector<uint32_t>> openOutputs(OperatorView& view, const graph::Dimensions& ofFirst) {
  if (view.outputCount() == 0) return fail(ErrorCode::kBadData, "It has no outputs.");
  std::vector<uint32_t> outputs;
  for (size_t i = 0; i < view.outputCount(); ++i) {
    HEARTH_ASSIGN(const uint32_t output,
                  outputOfShape(view, i, i == 0 ? ofFirst : graph::Dimensions{0}));
    view.builder().operand(output).isRankZeroTensor = false;
    outputs.push_back(output);
  }
  return outputs;
}

Status translateWhitespaceTokenizer(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t texts, view.input(0));
  graph::Dimensions padded = view.operand(texts).dimensions;
  padded.push_back(0);
  HEARTH_ASSIGN(std::vector<uint32_t> outputs,
                openOutputs(view, view.outputCount() == 1 ? padded : graph::Dimensions{0}));
  return view.emit(type, {texts}, std::move(outputs));
}

Status translateNgrams(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const FlexAttributes options, customOptions(view));
  HEARTH_ASSIGN(const int32_t width, countOption(options, "width"));
  const std::string reduction = options.text("reduction_type").value_or("");
  const double axis = options.number("axis").value_or(-1);
  if (reduction != "STRING_JOIN" || axis != -1)
    return fail(ErrorCode::kUnsupported,
                "It reduces with \"{}\" along the axis {}; only STRING_JOIN along -1 is supported.",
                cleanText(reduction), axis);
  HEARTH_ASSIGN(const uint32_t widthOperand, view.scalar(width));
  const std::string separator = options.text("string_separator").value_or("");
  HEARTH_ASSIGN(uint32_t separatorOperand, view.builder().omitted(OperandType::kTensorQuant8Asymm));
  if (!separator.empty()) {
    graph::Operand bytes;
    bytes.type = OperandType::kTensorQuant8Asymm;
    bytes.scale = 1.0f;
    bytes.dimensions = {static_cast<uint32_t>(separator.size())};
    HEARTH_ASSIGN(separatorOperand,
                  view.builder().constantTensor(
                      std::move(bytes),
                      {reinterpret_cast<const uint8_t*>(separator.data()), separator.size()}));
  }
  std::vector<uint32_t> inputs = {widthOperand, separatorOperand};
  for (size_t i = 0; i < view.inputCount(); ++i) {
    HEARTH_ASSIGN(const uint32_t input, view.input(i));
    inputs.push_back(input);
  }
  if (view.inputCount() == 0) return fail(ErrorCode::kBadData, "It has no inputs.");
  HEARTH_ASSIGN(std::vector<uint32_t> outputs,
                openOutputs(view, graph::Dimensions(view.operand(inputs[2]).dimensions.size(), 0)));
  return view.emit(type, std::move(inputs), std::move(outputs));
}

Result<RowPartition> partitionOf(std::string_view name) {
  if (name == "FIRST_DIM_SIZE") return RowPartition::kFirstDimension;
  if (name == "VALUE_ROWIDS") return RowPartition::kRowIds;
  if (name == "ROW_SPLITS") return RowPartition::kRowSplits;
  return fail(ErrorCode::kUnsupported, "Its partition is of the kind \"{}\".", cleanText(name));
}

Status translateRaggedTensorToTensor(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const FlexAttributes options, customOptions(view));
  std::vector<int32_t> kinds;
  for (const std::string_view name : options.texts("row_partition_types")) {
    HEARTH_ASSIGN(const RowPartition kind, partitionOf(name));
    kinds.push_back(static_cast<int32_t>(kind));
  }
  constexpr size_t kPartitions = 3;
  if (kinds.empty() || view.inputCount() != kPartitions + kinds.size())
    return fail(ErrorCode::kBadData, "It has {} inputs for {} kinds of partitions.",
                view.inputCount(), kinds.size());
  HEARTH_ASSIGN(const uint32_t kindsOperand, view.builder().intTensor(kinds));
  std::vector<uint32_t> inputs = {kindsOperand};
  for (size_t i = 0; i < view.inputCount(); ++i) {
    HEARTH_ASSIGN(const uint32_t input, view.input(i));
    inputs.push_back(input);
  }
  const bool hasSize = kinds[0] == static_cast<int32_t>(RowPartition::kFirstDimension);
  const size_t rank = kinds.size() - (hasSize ? 1 : 0) + view.operand(inputs[2]).dimensions.size();
  HEARTH_ASSIGN(std::vector<uint32_t> outputs, openOutputs(view, graph::Dimensions(rank, 0)));
  return view.emit(type, std::move(inputs), std::move(outputs));
}

}  // namespace

std::span<const CustomTranslatorEntry> textTranslators() {
  static constexpr CustomTranslatorEntry kTranslators[] = {
      {"tftext:WhitespaceTokenizer",
       {BuiltinOperator::CUSTOM, translateWhitespaceTokenizer,
        OperationType::kWhitespaceTokenizer}},
      {"tftext:Ngrams", {BuiltinOperator::CUSTOM, translateNgrams, OperationType::kNgrams}},
      {"RaggedTensorToTensor",
       {BuiltinOperator::CUSTOM, translateRaggedTensorToTensor,
        OperationType::kRaggedTensorToTensor}},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
