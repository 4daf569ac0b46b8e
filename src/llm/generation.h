// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "llm/json_constraint.h"
#include "llm/sampler.h"
#include "llm/session.h"
#include "llm/step_limits.h"
#include "llm/stop_rules.h"
#include "llm/text_stream.h"
#include "llm/tokenizer.h"

namespace hearth::llm {

enum class Ending { kStop, kMaxTokens, kContext, kCancelled };

struct GenerationOptions {
  size_t maxTokens = 0;  // 0 = as many as the context has room for
  // Where the context is full, the text goes on without its oldest tokens after so many, as of
  // shortenedText(); absent, or no less than the context: the answer ends.
  std::optional<size_t> keep = std::nullopt;
  StopRules stops;
  std::vector<int32_t> shownTokens = {};  // special tokens whose text is part of the answer's
  // The answer is such a text, and ends with it; null = any text. Of one generation alone.
  std::shared_ptr<JsonConstraint> constraint = nullptr;
};

struct GenerationResult {
  Ending ending = Ending::kStop;
  size_t tokens = 0;        // that were chosen, with those that ended the answer
  size_t dropped = 0;       // of the text, to make room
  double firstTokenMs = 0;  // from the beginning to the first token
  double totalMs = 0;       // and to the last one
};

// Continues a session's text, which has at least one token, token by token. The tokens become part
// of the text, of which others are dropped where the options say so. Session, tokenizer and sampler
// must outlive it, and nothing else may change the session meanwhile. Used by one thread at a time.
class Generation {
 public:
  Generation(Session* session, const Tokenizer& tokenizer, Sampler* sampler,
             GenerationOptions options);

  // Chooses a token. Returns the text that is certain now, whole characters or nothing; no value
  // when the answer has ended. Errors: those of Session::logits(), after which it may go on, and of
  // JsonConstraint::restrict(). A computation that `limits` cancel ends the answer.
  Result<std::optional<std::string>> next(const StepLimits& limits = {});

  // A copy of the scores of the next token, which the caller may change: next() chooses by them,
  // among the tokens that the constraint allows.
  // Empty when the answer has ended. Valid until next(). Errors as of next().
  Result<std::span<float>> scores(const StepLimits& limits = {});

  // Drops tokens of the text where the context is full and the options say so. Returns whether it
  // did: then much is to be computed before the next token. next() and scores() call it.
  Result<bool> makeRoom();

  // Ends the answer. Returns the rest of its text.
  std::string cancel();

  bool isEnded() const { return isEnded_; }
  const GenerationResult& result() const { return result_; }
  // What has been chosen.
  std::span<const int32_t> tokens() const { return answer_; }

 private:
  std::string end(Ending ending);
  bool isFull() const { return session_.tokens().size() == session_.context(); }
  bool canMakeRoom() const { return options_.keep && *options_.keep < session_.context(); }
  std::optional<Ending> endBefore(const StepLimits& limits) const;
  double elapsedMs() const;

  Session& session_;
  Sampler& sampler_;
  GenerationOptions options_;
  TextStream stream_;
  std::vector<int32_t> answer_;
  std::vector<float> scores_;  // of the caller, for the next token; else empty
  std::vector<int32_t> ends_;  // tokens that end the answer by themselves
  GenerationResult result_;
  bool isEnded_ = false;
  std::chrono::steady_clock::time_point begin_;
};

// Generates a whole answer. Calls `take` with each piece of its text; where it returns false the
// answer ends. Errors: those of Session::logits().
Result<GenerationResult> generate(Session* session, const Tokenizer& tokenizer, Sampler* sampler,
                                  const GenerationOptions& options,
                                  const std::function<bool(std::string_view)>& take);

}  // namespace hearth::llm
