// SPDX-License-Identifier: Apache-2.0
#include "llm/text_stream.h"

#include <algorithm>
#include <utility>

#include "llm/utf8.h"

namespace hearth::llm {

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<std::string> stops,
                       std::vector<int32_t> shown)
    : tokenizer_(tokenizer), stops_(std::move(stops)), shown_(std::move(shown)) {
  std::erase(stops_, "");
}

std::string TextStream::take(size_t count) {
  std::string text = replaceInvalidUtf8(std::string_view(pending_).substr(0, count));
  pending_.erase(0, count);
  return text;
}

std::string TextStream::add(int32_t token) {
  if (isEnded_) return "";
  if (std::ranges::contains(shown_, token)) {
    pending_ += tokenizer_.text(token);
    isFirst_ = false;
  } else {
    tokenizer_.appendBytes(token, &isFirst_, &pending_);
  }
  size_t end = std::string::npos;
  for (const std::string& stop : stops_) end = std::min(end, pending_.find(stop));
  if (end != std::string::npos) {
    isEnded_ = true;
    std::string text = take(end);
    pending_.clear();
    return text;
  }
  // Kept back: what may be the begin of an end, and of a character.
  size_t kept = unfinishedBytes(pending_);
  for (const std::string& stop : stops_) {
    for (size_t size = std::min(stop.size() - 1, pending_.size()); size > kept; --size) {
      if (!std::string_view(stop).starts_with(
              std::string_view(pending_).substr(pending_.size() - size)))
        continue;
      kept = size;
      break;
    }
  }
  return take(pending_.size() - kept);
}

std::string TextStream::finish() {
  if (isEnded_) return "";
  return take(pending_.size());
}

}  // namespace hearth::llm
