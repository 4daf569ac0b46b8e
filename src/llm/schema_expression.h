// SPDX-License-Identifier: Apache-2.0
// Regular expressions of JSON Schema, which are those of ECMA-262 with the flag `u`.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace hearth::llm {

// First and last character of each range, in their order, without overlap.
using CharacterRanges = std::vector<std::pair<uint32_t, uint32_t>>;

struct SchemaExpression {
  static constexpr uint32_t kUnlimited = UINT32_MAX;
  static constexpr uint32_t kMaxCount = 1000;

  enum class Kind { kSet, kSequence, kChoice, kRepeat, kBegin, kEnd };

  Kind kind = Kind::kSequence;
  CharacterRanges set;                  // of kSet
  std::vector<SchemaExpression> parts;  // of a sequence, the choices, or what is repeated
  uint32_t least = 0;                   // how often
  uint32_t most = 0;
};

// Known are characters, classes, `.`, `\d`, `\w`, `\s` and their opposites, groups, alternatives,
// repetitions, `^` and `$`. Errors: kBadData for what is no expression, kUnsupported for others.
Result<SchemaExpression> parseSchemaExpression(std::string_view text);

}  // namespace hearth::llm
