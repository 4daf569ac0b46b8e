// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"
#include "llm/text_automaton.h"

namespace hearth::llm {

// All texts that have a part which an expression of JSON Schema describes. Errors: those of
// parseSchemaExpression(), and kUnsupported where the automaton is too large.
Result<CharacterAutomaton> patternAutomaton(std::string_view expression, AutomatonBudget* budget);

}  // namespace hearth::llm
