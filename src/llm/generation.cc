// SPDX-License-Identifier: Apache-2.0
#include "llm/generation.h"

#include <chrono>
#include <string>
#include <vector>

#include "llm/text_stream.h"

namespace hearth::llm {

Result<GenerationResult> generate(Session* session, const Tokenizer& tokenizer, Sampler* sampler,
                                  const GenerationOptions& options,
                                  const std::function<bool(std::string_view)>& take) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const auto elapsed = [begin] {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  };
  GenerationResult result;
  TextStream stream(tokenizer, options.stops.texts);
  std::vector<int32_t> answer;
  bool isOpen = true;
  for (;;) {
    if (options.maxTokens != 0 && answer.size() == options.maxTokens) {
      result.ending = Ending::kMaxTokens;
      break;
    }
    if (session->tokens().size() == session->context()) {
      result.ending = Ending::kContext;
      break;
    }
    HEARTH_ASSIGN(const auto logits, session->logits());
    const int32_t token = sampler->next(logits);
    answer.push_back(token);
    if (answer.size() == 1) result.firstTokenMs = elapsed();
    HEARTH_TRY(session->append(std::span(&token, 1)));
    if (options.stops.endOf(answer) != 0) {
      result.ending = Ending::kStop;
      break;
    }
    isOpen = take(stream.add(token));
    if (!isOpen || stream.isEnded()) {
      result.ending = stream.isEnded() ? Ending::kStop : Ending::kCancelled;
      break;
    }
  }
  if (isOpen) take(stream.finish());
  result.tokens = answer.size();
  result.totalMs = elapsed();
  return result;
}

}  // namespace hearth::llm
