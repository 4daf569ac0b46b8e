// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"
#include "llm/sampler.h"
#include "llm/session.h"
#include "llm/stop_rules.h"
#include "llm/tokenizer.h"

namespace hearth::llm {

enum class Ending { kStop, kMaxTokens, kContext, kCancelled };

struct GenerationOptions {
  size_t maxTokens = 0;  // 0 = as many as the context has room for
  StopRules stops;
};

struct GenerationResult {
  Ending ending = Ending::kStop;
  size_t tokens = 0;        // that were chosen, with those that ended the answer
  double firstTokenMs = 0;  // from the call to the first token
  double totalMs = 0;
};

// Continues the session's text, which has at least one token. Calls `take` with each piece of the
// answer, whole characters or nothing, after each token; where it returns false the answer ends.
// The tokens become part of the session's text. Errors: those of Session::logits().
Result<GenerationResult> generate(Session* session, const Tokenizer& tokenizer, Sampler* sampler,
                                  const GenerationOptions& options,
                                  const std::function<bool(std::string_view)>& take);

}  // namespace hearth::llm
