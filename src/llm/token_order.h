// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "llm/tokenizer.h"

namespace hearth::llm {

// The tokens that stand for text, in the order of their bytes, so that a walk over all of them
// looks at each beginning that several have in common once. Immutable; thread-safe.
class TokenOrder {
 public:
  struct Entry {
    int32_t token = 0;
    uint32_t begin = 0;   // of its bytes
    uint32_t size = 0;    // at least 1
    uint32_t shared = 0;  // bytes at its beginning that the entry before has, too
  };

  explicit TokenOrder(const Tokenizer& tokenizer);

  const std::vector<Entry>& entries() const { return entries_; }
  std::string_view bytes(const Entry& entry) const {
    return std::string_view(bytes_).substr(entry.begin, entry.size);
  }

 private:
  std::string bytes_;
  std::vector<Entry> entries_;
};

}  // namespace hearth::llm
