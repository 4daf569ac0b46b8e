// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/result.h"
#include "llm/template_syntax.h"

namespace hearth::llm {

// Parses a chat template. Statements and expressions nest at most 50 and 100 deep. Error: kBadData
// for a wrong template, kUnsupported for a statement that is not known.
Result<StatementList> parseTemplate(std::string_view source);

}  // namespace hearth::llm
