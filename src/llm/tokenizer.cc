// SPDX-License-Identifier: Apache-2.0
#include "llm/tokenizer.h"

#include "llm/utf8.h"

namespace hearth::llm {

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, SpecialTokens special,
                                               bool isFirst) const {
  if (text.size() > kMaxTextBytes)
    return fail(ErrorCode::kBadData, "The text has {} bytes; at most {} are encoded.", text.size(),
                kMaxTextBytes);
  if (const size_t invalid = findInvalidUtf8(text); invalid != std::string_view::npos)
    return fail(ErrorCode::kBadData, "The text is no UTF-8 at byte {}.", invalid);
  return model_->encode(text, special, isFirst);
}

std::string Tokenizer::decode(std::span<const int32_t> tokens, bool hasSpecial,
                              bool isFirst) const {
  std::string bytes;
  for (const int32_t token : tokens) {
    if (!isSpecial(token)) {
      appendBytes(token, &isFirst, &bytes);
    } else if (hasSpecial) {
      bytes.append(text(token));
      isFirst = false;
    }
  }
  return replaceInvalidUtf8(bytes);
}

}  // namespace hearth::llm
