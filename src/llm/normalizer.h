// SPDX-License-Identifier: Apache-2.0
// What a tokenizer does to a text before it splits it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "llm/pattern.h"

namespace hearth::llm {

struct Normalizer {
  enum class Kind { kComposed, kDecomposed, kPrepend, kReplace, kStrip };

  Kind kind = Kind::kComposed;
  std::string text;                // kPrepend: what to prepend; kReplace: what to look for
  std::string replacement;         // of kReplace
  std::optional<Pattern> pattern;  // of kReplace, in place of `text`
  bool isLeft = false;             // of kStrip: which ends
  bool isRight = false;
};

// `text` is valid UTF-8. Error: kBadData where a pattern takes too long, or the text grows to more
// than 16 times its size.
Result<std::string> normalize(const std::vector<Normalizer>& normalizers, std::string_view text);

}  // namespace hearth::llm
