// SPDX-License-Identifier: Apache-2.0
// How a session begins with scores that the store of prefixes has.
#include <algorithm>
#include <utility>

#include "llm/session.h"

namespace hearth::llm {

std::unique_ptr<Session> Session::createStored(std::shared_ptr<const PrefixCache> prefixes,
                                               StoredScores stored, std::vector<int32_t> tokens,
                                               size_t context, Compile compile) {
  std::unique_ptr<Session> session(new Session(nullptr));
  session->compile_ = std::move(compile);
  session->prefixes_ = std::move(prefixes);
  session->context_ = context != 0 ? std::min(context, stored.capacity) : stored.capacity;
  session->vocabularySize_ = stored.scores.size();
  session->mark_ = tokens.size();
  session->given_ = Given{.stored = std::move(stored), .tokens = tokens.size()};
  session->tokens_ = std::move(tokens);
  return session;
}

bool Session::takeScores() {
  const size_t count = tokens_.size();
  if (!given_) {
    if (prefixes_ == nullptr || computed_ != 0 || mark_ != count) return false;
    auto stored = prefixes_->scores(tokens_);
    if (!stored || stored->scores.size() != vocabularySize_ ||
        stored->capacity != layout_->capacity())
      return false;
    given_ = Given{.stored = *std::move(stored), .tokens = count};
  }
  if (given_->tokens != count || (!given_->isUsed && mark_ != count)) return false;
  if (!std::exchange(given_->isUsed, true)) counts_.stored += count;
  hasLogits_ = true;
  return true;
}

Status Session::settle(const StepLimits& limits) {
  HEARTH_TRY(makeReady());
  if (!hasGiven()) {
    given_.reset();
    return {};
  }
  const size_t last = given_->tokens - 1;
  const uint64_t counted = counts_.stored;
  const Status computed = computeMarked(last, limits);
  counts_.stored = counted;
  HEARTH_TRY(computed);
  const StoredScores& stored = given_->stored;
  // Another division of the text has other keys and values.
  if (layout_ && stored.predecessor == markedKey_ &&
      stored.caches.size() == layout_->bytes(last, last + 1))
    layout_->load(last, last + 1, stored.caches, -1);
  else
    HEARTH_TRY(compute(last, 1, 1, limits));
  computed_ = last + 1;
  if (hasLogits_) std::ranges::copy(stored.scores, reinterpret_cast<float*>(memory_.logits.data()));
  given_.reset();
  return {};
}

Status Session::settleBeyond(size_t kept) {
  if (!given_ || kept >= given_->tokens) return {};
  if (hasGiven()) return settle({});
  given_.reset();
  return {};
}

void Session::noteScores() {
  if (prefixes_ == nullptr || marked_ == 0 || mark_ != tokens_.size() || marked_ + 1 != mark_)
    return;
  const auto computed = scores();
  unkeptScores_.assign(computed.begin(), computed.end());
}

}  // namespace hearth::llm
