// SPDX-License-Identifier: Apache-2.0
// A schema up to the first zero, then bytes that choose a text of it: it never gets stuck, and is
// JSON where it ends.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "llm/chat_template.h"
#include "llm/json_automaton.h"

namespace {

using hearth::llm::JsonAutomaton;
using hearth::llm::JsonSchema;

constexpr size_t kMaxStates = 300;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t end = bytes.find('\0');
  auto schema = JsonSchema::parse(bytes.substr(0, end));
  if (!schema || end == std::string_view::npos) return 0;
  JsonAutomaton automaton(std::make_shared<const JsonSchema>(*std::move(schema)));
  JsonAutomaton::State state = automaton.begin();
  require(state != JsonAutomaton::kWrong);
  std::string text;
  for (const char choice : bytes.substr(end + 1)) {
    if (automaton.mustEnd(state)) break;
    // The first byte from this one on that may come.
    const auto first = static_cast<uint8_t>(choice);
    JsonAutomaton::State next = JsonAutomaton::kWrong;
    unsigned step = 0;
    for (; step < 256 && next == JsonAutomaton::kWrong; ++step)
      next = automaton.next(state, static_cast<uint8_t>(first + step));
    require(next != JsonAutomaton::kWrong);
    text.push_back(static_cast<char>(first + step - 1));
    state = automaton.size() > kMaxStates ? automaton.forgetOthers(next) : next;
  }
  if (automaton.mayEnd(state)) require(hearth::llm::templateValueOfJson(text).has_value());
  return 0;
}
