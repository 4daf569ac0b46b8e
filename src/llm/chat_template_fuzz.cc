// SPDX-License-Identifier: Apache-2.0
// Any bytes as a chat template, which is rendered for a conversation.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "llm/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const hearth::llm::TemplateValue variables =
      *hearth::llm::templateValueOfJson(R"({"messages": [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Hi <|end|>"},
        {"role": "assistant", "content": "", "tool_calls": [
          {"function": {"name": "f", "arguments": {"x": 1, "y": [2.5, null, true]}}}]}],
        "add_generation_prompt": true, "bos_token": "<s>", "tools": []})");
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto made = hearth::llm::ChatTemplate::parse(source);
  if (made) (void)made->render(variables.asDictionary()->items);
  return 0;
}
