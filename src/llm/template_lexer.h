// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth::llm {

struct TemplateToken {
  enum class Kind {
    kText,        // outside of tags
    kPrintBegin,  // {{
    kPrintEnd,    // }}
    kBlockBegin,  // {%
    kBlockEnd,    // %}
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,
    kEnd,  // of the template
  };

  Kind kind = Kind::kEnd;
  std::string text;  // of text and strings what they stand for
  int64_t integer = 0;
  double number = 0;
  uint32_t line = 1;
};

// The tokens of a Jinja template, ending with kEnd, read as chat templates are: the first line
// break behind a block is dropped (trim_blocks), as is white space in front of one that begins a
// line (lstrip_blocks), and a line break at the end. Error: kBadData.
Result<std::vector<TemplateToken>> readTemplateTokens(std::string_view source);

}  // namespace hearth::llm
