// SPDX-License-Identifier: Apache-2.0
// Any bytes as an answer that may have calls: in pieces, the same text and calls are found. The
// first byte says which form calls have.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "llm/tool_calls.h"

namespace {

using hearth::llm::ToolCallReader;
using hearth::llm::toolFormatOf;

constexpr std::array kTemplates = {"<tool_call> arguments", "[TOOL_CALLS] arguments",
                                   "<|start_header_id|> \"parameters\": "};

void require(bool condition) {
  if (!condition) std::abort();
}

std::string found(std::string_view answer, uint8_t choice, size_t size) {
  ToolCallReader reader(*toolFormatOf(kTemplates[choice % kTemplates.size()]), {"f", "g"},
                        choice & 0x80);
  std::string text;
  std::string calls;
  const auto take = [&](const ToolCallReader::Piece& piece) {
    text += piece.text;
    for (const auto& call : piece.calls) calls += call.name + call.arguments;
  };
  for (size_t i = 0; i < answer.size(); i += size) take(reader.add(answer.substr(i, size)));
  take(reader.finish());
  require(text.size() <= answer.size() + 16);
  return text + calls;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view answer(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::string whole = found(answer, data[0], answer.size());
  require(found(answer, data[0], 1) == whole);
  require(found(answer, data[0], 7) == whole);
  return 0;
}
