// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "llm/json_automaton.h"
#include "llm/json_schema.h"
#include "llm/token_order.h"
#include "llm/tokenizer.h"

namespace hearth::llm {

// Restricts an answer to texts of a schema, token by token. Used by one thread at a time; the
// tokenizer must outlive it.
class JsonConstraint {
 public:
  // `tokens`: those of the tokenizer.
  JsonConstraint(std::shared_ptr<const JsonSchema> schema, std::shared_ptr<const TokenOrder> tokens,
                 const Tokenizer& tokenizer);

  // Makes the scores of all tokens that may not come next impossible (negative infinity). `ends`:
  // tokens that end the answer, which may come where the text may end. Error: kUnsupported where no
  // token may come.
  Status restrict(std::span<float> scores, std::span<const int32_t> ends);

  // The token that was chosen. False where it may not come.
  bool accept(int32_t token);

  // Whether the text is whole, and nothing can be added.
  bool isComplete() { return automaton_.mustEnd(state_); }

 private:
  const std::shared_ptr<const TokenOrder> tokens_;
  const Tokenizer& tokenizer_;
  JsonAutomaton automaton_;
  JsonAutomaton::State state_;
  std::vector<JsonAutomaton::State> path_;  // behind each byte of a token
  std::vector<float> allowed_;
};

}  // namespace hearth::llm
