// SPDX-License-Identifier: Apache-2.0
#include "llm/generation.h"

#include <algorithm>
#include <utility>

#include "llm/text_window.h"

namespace hearth::llm {

Generation::Generation(Session* session, const Tokenizer& tokenizer, Sampler* sampler,
                       GenerationOptions options)
    : session_(*session),
      sampler_(*sampler),
      options_(std::move(options)),
      stream_(tokenizer, options_.stops.texts, options_.shownTokens),
      begin_(std::chrono::steady_clock::now()) {
  for (const std::vector<int32_t>& sequence : options_.stops.sequences)
    if (sequence.size() == 1) ends_.push_back(sequence.front());
}

double Generation::elapsedMs() const {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_)
      .count();
}

std::string Generation::end(Ending ending) {
  isEnded_ = true;
  result_.ending = ending;
  result_.totalMs = elapsedMs();
  return stream_.finish();
}

std::string Generation::cancel() {
  return isEnded_ ? std::string() : end(Ending::kCancelled);
}

// What ends the answer before another token is chosen.
std::optional<Ending> Generation::endBefore(const StepLimits& limits) const {
  if (limits.isCancelled != nullptr && *limits.isCancelled) return Ending::kCancelled;
  if (options_.maxTokens != 0 && answer_.size() == options_.maxTokens) return Ending::kMaxTokens;
  if (isFull() && !canMakeRoom()) return Ending::kContext;
  return std::nullopt;
}

Result<bool> Generation::makeRoom() {
  if (!isFull() || !canMakeRoom()) return false;
  const size_t before = session_.tokens().size();
  HEARTH_TRY(
      session_.replace(shortenedText(session_.tokens(), session_.context(), *options_.keep)));
  result_.dropped += before - session_.tokens().size();
  return true;
}

Result<std::span<float>> Generation::scores(const StepLimits& limits) {
  // next() says how it ends.
  if (isEnded_ || endBefore(limits)) return std::span<float>();
  if (scores_.empty()) {
    HEARTH_TRY(makeRoom());
    HEARTH_ASSIGN(const auto logits, session_.logits(limits));
    scores_.assign(logits.begin(), logits.end());
  }
  return scores_;
}

Result<std::optional<std::string>> Generation::next(const StepLimits& limits) {
  if (isEnded_) return std::nullopt;
  if (const auto ending = endBefore(limits)) return end(*ending);
  std::span<const float> scores = scores_;
  if (scores.empty()) {
    HEARTH_TRY(makeRoom());
    const auto logits = session_.logits(limits);
    if (!logits) {
      if (limits.isCancelled != nullptr && *limits.isCancelled) return end(Ending::kCancelled);
      return std::unexpected(logits.error());
    }
    scores = *logits;
  }
  JsonConstraint* const constraint = options_.constraint.get();
  if (constraint != nullptr) {
    if (scores_.empty()) scores_.assign(scores.begin(), scores.end());
    HEARTH_TRY(constraint->restrict(scores_, ends_));
    scores = scores_;
  }
  // What of the answer the text still has.
  const size_t kept = result_.dropped != 0 ? *options_.keep : 0;
  const size_t answered = std::min(answer_.size(), session_.tokens().size() - kept);
  const int32_t token = sampler_.next(scores, session_.tokens(), answered);
  const bool isEnd = std::ranges::contains(ends_, token);
  if (constraint != nullptr && !isEnd && !constraint->accept(token))
    return fail(ErrorCode::kUnsupported,
                "The model never chooses the tokens that its JSON format asks for.");
  HEARTH_TRY(session_.append(std::span(&token, 1)));
  scores_.clear();
  answer_.push_back(token);
  result_.tokens = answer_.size();
  if (answer_.size() == 1) result_.firstTokenMs = elapsedMs();
  if (options_.stops.endOf(answer_) != 0) return end(Ending::kStop);
  std::string text = stream_.add(token);
  const bool isComplete = constraint != nullptr && constraint->isComplete();
  if (stream_.isEnded() || isComplete) text += end(Ending::kStop);
  return text;
}

Result<GenerationResult> generate(Session* session, const Tokenizer& tokenizer, Sampler* sampler,
                                  const GenerationOptions& options,
                                  const std::function<bool(std::string_view)>& take) {
  Generation generation(session, tokenizer, sampler, options);
  for (;;) {
    HEARTH_ASSIGN(const auto text, generation.next());
    if (!text) return generation.result();
    if (!take(*text)) generation.cancel();
  }
}

}  // namespace hearth::llm
