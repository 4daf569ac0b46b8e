// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "llm/conversation.h"

namespace hearth::llm {

// A conversation as it is written to a file, with the model that it was held with.
struct SavedConversation {
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  std::string modelName;     // of its file, for people
  std::string modelContent;  // SHA-256 of its file in hexadecimal digits; empty = not known
  Conversation conversation;

  // A JSON object: `version`, `model` and what Conversation::toValue() has. Error: kBadData for
  // more than kMaxBytes.
  Result<std::string> toJson() const;
  // Errors: kBadData for what toJson() has not made, kUnsupported for one of a later version.
  static Result<SavedConversation> ofJson(std::string_view json);

  // Whether that is the model, as far as both are known.
  bool isOf(std::string_view name, std::string_view content) const;
};

}  // namespace hearth::llm
