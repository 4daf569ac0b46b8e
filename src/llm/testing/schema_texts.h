// SPDX-License-Identifier: Apache-2.0
// Reads and makes texts of a JSON Schema in tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "llm/json_automaton.h"

namespace hearth::llm {

class SchemaTexts {
 public:
  explicit SchemaTexts(std::string_view schema) {
    auto parsed = JsonSchema::parse(schema);
    EXPECT_TRUE(parsed) << schema.substr(0, 200) << ": " << parsed.error().toString();
    automaton_ =
        std::make_unique<JsonAutomaton>(std::make_shared<const JsonSchema>(parsed.value()));
  }

  JsonAutomaton& automaton() { return *automaton_; }
  JsonAutomaton::State stateBehind(std::string_view text) {
    JsonAutomaton::State state = automaton_->begin();
    for (const char c : text) state = automaton_->next(state, static_cast<uint8_t>(c));
    return state;
  }
  bool has(std::string_view text) { return automaton_->mayEnd(stateBehind(text)); }

  // A text that is chosen byte by byte among those that may come. `closing`: bytes that are
  // preferred, so that it does not get long.
  std::string make(std::mt19937* random, std::string_view closing) {
    JsonAutomaton::State state = automaton_->begin();
    std::string text;
    while (!automaton_->mustEnd(state)) {
      std::string possible;
      std::string preferred;
      for (int byte = 0; byte < 256; ++byte) {
        if (automaton_->next(state, static_cast<uint8_t>(byte)) == JsonAutomaton::kWrong) continue;
        possible.push_back(static_cast<char>(byte));
        if (closing.contains(possible.back())) preferred.push_back(possible.back());
      }
      // A number may end where more digits may come.
      if (automaton_->mayEnd(state) && (*random)() % 3 == 0) break;
      EXPECT_FALSE(possible.empty()) << "behind " << text;
      if (possible.empty() || text.size() > 1'000'000) break;
      const std::string& from = !preferred.empty() && (*random)() % 3 != 0 ? preferred : possible;
      text.push_back(from[(*random)() % from.size()]);
      state = automaton_->next(state, static_cast<uint8_t>(text.back()));
      if (automaton_->size() > 500) state = automaton_->forgetOthers(state);
    }
    return text;
  }

 private:
  std::unique_ptr<JsonAutomaton> automaton_;
};

inline std::string schemaProblem(std::string_view schema) {
  const auto parsed = JsonSchema::parse(schema);
  return parsed ? "" : parsed.error().toString();
}

}  // namespace hearth::llm
