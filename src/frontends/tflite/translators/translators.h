// SPDX-License-Identifier: Apache-2.0
// Which operations of .tflite files are translated, and by what.
#pragma once

#include <span>

#include "base/result.h"
#include "frontends/tflite/translators/operator_view.h"

namespace hearth::tflite {

// One translation. `type` is handed to `translate`, so that operations of one form share it.
// It appends operations to the view's subgraph; arguments and their order are NNAPI's, or those
// documented in src/ops for extension operations.
struct TranslatorEntry {
  schema::BuiltinOperator code;
  Status (*translate)(OperatorView& view, graph::OperationType type);
  graph::OperationType type;
};

// nullptr for operations that are not translated.
const TranslatorEntry* findTranslator(schema::BuiltinOperator code);

// The families.
std::span<const TranslatorEntry> compositeTranslators();
std::span<const TranslatorEntry> controlFlowTranslators();
std::span<const TranslatorEntry> convTranslators();
std::span<const TranslatorEntry> elementwiseTranslators();
std::span<const TranslatorEntry> lookupTranslators();
std::span<const TranslatorEntry> quantizationTranslators();
std::span<const TranslatorEntry> recurrentTranslators();
std::span<const TranslatorEntry> reduceTranslators();
std::span<const TranslatorEntry> resizeTranslators();
std::span<const TranslatorEntry> shapeTranslators();

}  // namespace hearth::tflite
