// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <new>

#include "llm/c_api/handles.h"

namespace hearth::llm::c_api {

char* copyText(std::string_view text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

int32_t* copyTokens(const std::vector<int32_t>& tokens) {
  auto* const copy = static_cast<int32_t*>(std::malloc(tokens.size() * sizeof(int32_t) + 1));
  if (copy == nullptr) throw std::bad_alloc();
  if (!tokens.empty()) std::memcpy(copy, tokens.data(), tokens.size() * sizeof(int32_t));
  return copy;
}

}  // namespace hearth::llm::c_api
