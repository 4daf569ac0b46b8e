// SPDX-License-Identifier: Apache-2.0
#include "llm/normalizer.h"

#include <utility>

#include "llm/unicode.h"
#include "llm/unicode_normal_form.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

constexpr size_t kMaxGrowth = 16;
constexpr size_t kSpareBytes = 4096;

Result<std::string> replace(const Normalizer& normalizer, std::string_view text, size_t limit) {
  std::string made;
  PatternBudget budget(text.size());
  for (size_t at = 0;;) {
    size_t begin = std::string_view::npos;
    size_t end = 0;
    if (normalizer.pattern) {
      HEARTH_ASSIGN(const auto match, normalizer.pattern->find(text, at, &budget));
      if (match) {
        begin = match->begin;
        end = match->end;
      }
    } else {
      begin = text.find(normalizer.text, at);
      end = begin + normalizer.text.size();
    }
    if (begin == std::string_view::npos) {
      made.append(text, at);
      return made;
    }
    made.append(text, at, begin - at);
    made += normalizer.replacement;
    if (made.size() > limit)
      return fail(ErrorCode::kBadData, "The tokenizer makes more than {} bytes of the text.",
                  limit);
    at = end;
    if (begin < end) continue;
    // An empty match: one character is passed over.
    if (at >= text.size()) return made;
    const size_t size = decodeCharacter(text, at).size;
    made.append(text, at, size);
    at += size;
  }
}

std::string stripped(const Normalizer& normalizer, std::string_view text) {
  size_t begin = 0;
  size_t end = 0;
  bool isBegun = !normalizer.isLeft;
  for (size_t at = 0; at < text.size();) {
    const Character character = decodeCharacter(text, at);
    const bool isSpace = isWhiteSpace(character.code);
    if (!isBegun && !isSpace) {
      begin = at;
      isBegun = true;
    }
    at += character.size;
    if (!isSpace || !normalizer.isRight) end = at;
  }
  if (!isBegun || end <= begin) return "";
  return std::string(text.substr(begin, end - begin));
}

}  // namespace

Result<std::string> normalize(const std::vector<Normalizer>& normalizers, std::string_view text) {
  const size_t limit = kMaxGrowth * text.size() + kSpareBytes;
  std::string made(text);
  for (const Normalizer& normalizer : normalizers) {
    switch (normalizer.kind) {
      case Normalizer::Kind::kComposed:
        made = composed(made);
        break;
      case Normalizer::Kind::kDecomposed:
        made = decomposed(made);
        break;
      case Normalizer::Kind::kPrepend:
        if (!made.empty()) made.insert(0, normalizer.text);
        break;
      case Normalizer::Kind::kReplace: {
        HEARTH_ASSIGN(made, replace(normalizer, made, limit));
        break;
      }
      case Normalizer::Kind::kStrip:
        made = stripped(normalizer, made);
        break;
    }
    if (made.size() > limit)
      return fail(ErrorCode::kBadData, "The tokenizer makes more than {} bytes of the text.",
                  limit);
  }
  return made;
}

}  // namespace hearth::llm
