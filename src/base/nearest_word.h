// SPDX-License-Identifier: Apache-2.0
// What somebody who mistyped a word probably meant.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hearth::base {

// The word of `words` that becomes `typed` with the fewest mistakes, each a letter that is missing,
// one too many, a wrong one, or two that changed places; of equally near ones the first. A word
// that begins with `typed`, or that `typed` begins with, is near whatever the rest. No word if each
// takes more mistakes than one in three of its letters, or `typed` has fewer than two letters.
std::optional<std::string> nearestWord(std::string_view typed, std::span<const std::string> words);

}  // namespace hearth::base
