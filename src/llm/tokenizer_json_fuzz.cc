// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tokenizer.json, with which texts become tokens and text again; and the table that
// is made of it with one byte changed, as the input's last five bytes say.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "llm/tokenizer.h"
#include "llm/utf8.h"

namespace {

using hearth::llm::SpecialTokens;
using hearth::llm::Tokenizer;

void use(const Tokenizer& tokenizer) {
  for (const std::string_view text :
       {"", "Hello, world's  end 123\n\n", "\u00E9e\u0301 \u4E2D\u6587 \U0001F600 <|end|>"}) {
    for (const SpecialTokens special : {SpecialTokens::kAreText, SpecialTokens::kAreParsed}) {
      const auto tokens = tokenizer.encode(text, special);
      if (!tokens) continue;
      if (hearth::llm::findInvalidUtf8(tokenizer.decode(*tokens)) != std::string_view::npos)
        std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto made = Tokenizer::tableOfJson({reinterpret_cast<const char*>(data), size});
  if (!made) return 0;
  const auto bytes = std::make_shared<std::vector<uint8_t>>(*made);
  const auto tokenizer = Tokenizer::fromTable(*bytes, bytes);
  if (tokenizer) use(*tokenizer);
  uint32_t place = 0;
  if (size < sizeof place + 1) return 0;
  std::memcpy(&place, data + size - sizeof place, sizeof place);
  (*bytes)[place % bytes->size()] ^= data[size - sizeof place - 1];
  const auto damaged = Tokenizer::fromTable(*bytes, bytes);
  if (damaged) use(*damaged);
  return 0;
}
