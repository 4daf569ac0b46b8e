// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace hearth::llm {

// The expression (schema_pattern.h) of a `format` of JSON Schema: texts that are right for certain,
// in most cases all of the format. Empty for one that is not known.
std::string expressionOfFormat(std::string_view format);

}  // namespace hearth::llm
