// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tokenizer.json, with which texts become tokens and text again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "llm/tokenizer.h"
#include "llm/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hearth::llm::SpecialTokens;
  const auto tokenizer =
      hearth::llm::Tokenizer::fromJson({reinterpret_cast<const char*>(data), size});
  if (!tokenizer) return 0;
  for (const std::string_view text :
       {"", "Hello, world's  end 123\n\n", "\u00E9e\u0301 \u4E2D\u6587 \U0001F600 <|end|>"}) {
    for (const SpecialTokens special : {SpecialTokens::kAreText, SpecialTokens::kAreParsed}) {
      const auto tokens = tokenizer->encode(text, special);
      if (!tokens) continue;
      if (hearth::llm::findInvalidUtf8(tokenizer->decode(*tokens)) != std::string_view::npos)
        std::abort();
    }
  }
  return 0;
}
