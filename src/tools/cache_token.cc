// SPDX-License-Identifier: Apache-2.0
#include "tools/cache_token.h"

namespace hearth::tools {

Outcome<CacheToken> parseCacheToken(const std::string& text) {
  CacheToken token{};
  const auto wrong = [&] {
    return usage("The token is \"{}\", not {} hexadecimal digits.", text, 2 * token.size());
  };
  if (text.empty()) return token;
  if (text.size() != 2 * token.size()) return wrong();
  if (text.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return wrong();
  for (size_t i = 0; i < token.size(); ++i)
    token[i] = static_cast<uint8_t>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
  return token;
}

}  // namespace hearth::tools
