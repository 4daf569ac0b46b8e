// SPDX-License-Identifier: Apache-2.0
#include "llm/json_constraint.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace hearth::llm {
namespace {

// Each state takes a kilobyte.
constexpr size_t kMaxStates = 8192;
constexpr float kImpossible = -std::numeric_limits<float>::infinity();

}  // namespace

JsonConstraint::JsonConstraint(std::shared_ptr<const JsonSchema> schema,
                               std::shared_ptr<const TokenOrder> tokens, const Tokenizer& tokenizer)
    : tokens_(std::move(tokens)),
      tokenizer_(tokenizer),
      automaton_(std::move(schema)),
      state_(automaton_.begin()) {}

Status JsonConstraint::restrict(std::span<float> scores, std::span<const int32_t> ends) {
  if (automaton_.size() > kMaxStates) state_ = automaton_.forgetOthers(state_);
  allowed_.assign(scores.size(), kImpossible);
  const auto allow = [&](int32_t token, bool isAllowed) {
    const auto index = static_cast<size_t>(token);
    // A model may have fewer scores than its tokenizer has tokens.
    if (index < scores.size()) allowed_[index] = isAllowed ? scores[index] : kImpossible;
  };
  path_.assign(1, state_);
  // Of what the entry has in common with the last one that was looked at.
  uint32_t shared = 0;
  for (const TokenOrder::Entry& entry : tokens_->entries()) {
    shared = std::min(shared, entry.shared);
    // The bytes that the last one failed with are in this one, too.
    if (shared >= path_.size()) continue;
    path_.resize(shared + 1);
    const std::string_view bytes = tokens_->bytes(entry);
    JsonAutomaton::State state = path_.back();
    for (size_t i = shared; i < bytes.size() && state != JsonAutomaton::kWrong; ++i) {
      state = automaton_.next(state, static_cast<uint8_t>(bytes[i]));
      if (state != JsonAutomaton::kWrong) path_.push_back(state);
    }
    if (path_.size() == bytes.size() + 1) allow(entry.token, true);
    shared = entry.size;
  }
  const bool mayEnd = automaton_.mayEnd(state_);
  for (const int32_t end : ends) allow(end, mayEnd);
  if (std::ranges::none_of(allowed_, [](float score) { return score > kImpossible; }))
    return fail(ErrorCode::kUnsupported,
                "No token of the model can continue the answer as its JSON format asks.");
  std::ranges::copy(allowed_, scores.begin());
  return {};
}

bool JsonConstraint::accept(int32_t token) {
  std::string bytes;
  bool isFirst = false;
  tokenizer_.appendBytes(token, &isFirst, &bytes);
  JsonAutomaton::State state = state_;
  for (const char c : bytes) state = automaton_.next(state, static_cast<uint8_t>(c));
  if (bytes.empty() || state == JsonAutomaton::kWrong) return false;
  state_ = state;
  return true;
}

}  // namespace hearth::llm
