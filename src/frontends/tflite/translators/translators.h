// SPDX-License-Identifier: Apache-2.0
// Maps the operations of .tflite files to their translators.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "frontends/tflite/reader/file_operators.h"
#include "frontends/tflite/translators/operator_view.h"

namespace hearth::tflite {

// One translator. `type` is passed to `translate`, so that operations of one form share a function.
// It appends operations to the view's subgraph; their arguments and the order are NNAPI's, or those
// documented in src/ops for extension operations.
struct TranslatorEntry {
  schema::BuiltinOperator code;
  Status (*translate)(OperatorView& view, graph::OperationType type);
  graph::OperationType type;
};

// Null for operations that are not translated.
const TranslatorEntry* findTranslator(schema::BuiltinOperator code);
// The same, with custom operations by their names: those known here, then those whose operators
// the program registered (ops/custom_operator.h).
const TranslatorEntry* findTranslator(const schema::OperatorCode& code);

// A custom operation, of the builtin code CUSTOM.
struct CustomTranslatorEntry {
  std::string_view name;
  TranslatorEntry translator;
};
// All of them that are built in.
std::span<const CustomTranslatorEntry> customTranslators();
std::span<const CustomTranslatorEntry> audioTranslators();
std::span<const CustomTranslatorEntry> detectionCustomTranslators();
std::span<const CustomTranslatorEntry> landmarkTranslators();
std::span<const CustomTranslatorEntry> mediapipeTranslators();
std::span<const CustomTranslatorEntry> textTranslators();
std::span<const CustomTranslatorEntry> transformationTranslators();
// Null when the program has registered no operator of this name, or none that files may name.
const TranslatorEntry* registeredTranslator(std::string_view name);
// Appends the operation of a replacement. kUnsupported for a tensor that has no operand.
Status translateReplacement(SubgraphBuilder& builder, const Replacement& replacement);

// Translates an operation whose arguments are the tensors of the file, and nothing else.
template <size_t kInputs>
Status translatePlain(OperatorView& view, graph::OperationType type) {
  std::vector<uint32_t> inputs;
  for (size_t i = 0; i < kInputs; ++i) {
    HEARTH_ASSIGN(const uint32_t input, view.input(i));
    inputs.push_back(input);
  }
  return view.emit(type, std::move(inputs));
}

// Translates an operation whose first inputs are data; the others are integers, each a
// TENSOR_INT32.
template <size_t kInputs, size_t kDataInputs = 1>
Status translateWithInts(OperatorView& view, graph::OperationType type) {
  std::vector<uint32_t> inputs;
  for (size_t i = 0; i < kDataInputs; ++i) {
    HEARTH_ASSIGN(const uint32_t input, view.input(i));
    inputs.push_back(input);
  }
  for (size_t i = kDataInputs; i < kInputs; ++i) {
    HEARTH_ASSIGN(const uint32_t ints, view.intTensorInput(i));
    inputs.push_back(ints);
  }
  return view.emit(type, std::move(inputs));
}

// One table for each family of operations.
std::span<const TranslatorEntry> compositeTranslators();
std::span<const TranslatorEntry> complexTranslators();
std::span<const TranslatorEntry> controlFlowTranslators();
std::span<const TranslatorEntry> convTranslators();
std::span<const TranslatorEntry> detectionTranslators();
std::span<const TranslatorEntry> elementwiseTranslators();
std::span<const TranslatorEntry> hashtableTranslators();
std::span<const TranslatorEntry> lookupTranslators();
std::span<const TranslatorEntry> quantizationTranslators();
std::span<const TranslatorEntry> randomTranslators();
std::span<const TranslatorEntry> recurrentTranslators();
std::span<const TranslatorEntry> reduceTranslators();
std::span<const TranslatorEntry> resizeTranslators();
std::span<const TranslatorEntry> shapeTranslators();

}  // namespace hearth::tflite
