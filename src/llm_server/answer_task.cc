// SPDX-License-Identifier: Apache-2.0
#include "llm_server/answer_task.h"

#include <utility>

#include "base/caught.h"
#include "llm/thrown.h"

namespace hearth::llm_server {

AnswerTask::AnswerTask(AnswerWork work, ConversationPool* pool, Metrics* metrics,
                       std::function<void()> onEnd)
    : work_(std::move(work)),
      pool_(*pool),
      metrics_(*metrics),
      onEnd_(std::move(onEnd)),
      reply_(work_.exchange, work_.request, work_.model->name),
      sampler_(llm::samplerOptions(work_.model->model->metadata(), work_.request.sampler)) {
  figures_.promptTokens = work_.tokens.size();
}

AnswerTask::~AnswerTask() {
  // The server ends before the answer does.
  if (!hasEnded_) fail(Error(ErrorCode::kResourceExhaustedTransient, "The server is ending."));
  onEnd_();
}

bool AnswerTask::isWanted() {
  if (hasEnded_) return false;
  if (work_.exchange->isGone()) {
    metrics_.countAbandoned();
    end();
    return false;
  }
  if (std::chrono::steady_clock::now() < work_.deadline) return true;
  fail(Error(ErrorCode::kMissedDeadlineTransient, ""));
  return false;
}

Task::Start AnswerTask::start() {
  auto taken = llm::returned([&] { return pool_.take(work_.model, work_.tokens, work_.marked); });
  if (!taken) {
    fail(taken.error());
    return Start::kEnded;
  }
  taken_ = *taken;
  if (taken_.conversation == nullptr) return Start::kMustWait;
  llm::Session& session = *taken_.conversation->session;
  storedBefore_ = session.counts().stored;
  figures_.reusedTokens = taken_.reused;
  llm::GenerationOptions options{
      .maxTokens = work_.request.maxTokens, .keep = work_.keep, .stops = work_.model->stops};
  for (std::string& stop : work_.request.stops) options.stops.texts.push_back(std::move(stop));
  if (const llm::ToolFormat* const calls = work_.calls) {
    callReader_.emplace(*calls, work_.request.toolNames,
                        work_.request.toolChoice == ToolChoice::kRequired);
    for (const std::string_view mark : {calls->begin, calls->end})
      if (const auto token = work_.model->model->tokenizer().specialToken(mark))
        options.shownTokens.push_back(*token);
  }
  if (work_.request.format != nullptr)
    options.constraint = std::make_shared<llm::JsonConstraint>(
        work_.request.format, work_.model->model->tokenOrder(), work_.model->model->tokenizer());
  generation_.emplace(&session, work_.model->model->tokenizer(), &sampler_, std::move(options));
  return Start::kStarted;
}

bool AnswerTask::step() {
  const auto begin = std::chrono::steady_clock::now();
  const auto goesOn = llm::returned([&] { return advance(); });
  figures_.computing += std::chrono::steady_clock::now() - begin;
  if (!goesOn) {
    fail(goesOn.error());
    return false;
  }
  if (*goesOn) return true;
  figures_.tokens = generation_->result().tokens;
  // Before the last byte, so that who has read it finds the figures up to date.
  metrics_.countAnswer(work_.model->name, figures_);
  reply_.finish(generation_->result().ending,
                {.promptTokens = figures_.promptTokens,
                 .cachedTokens = figures_.reusedTokens + figures_.storedTokens,
                 .tokens = figures_.tokens});
  end();
  return false;
}

// Returns false when the answer has ended.
Result<bool> AnswerTask::advance() {
  const llm::StepLimits limits{.deadline = work_.deadline};
  llm::Session& session = *taken_.conversation->session;
  if (!isPrefilled_) {
    HEARTH_ASSIGN(isPrefilled_, session.advance(limits));
    figures_.storedTokens = session.counts().stored - storedBefore_;
    return true;
  }
  // What of the text is left is computed in steps, too.
  HEARTH_ASSIGN(const bool hasRoomAgain, generation_->makeRoom());
  if (hasRoomAgain) {
    isPrefilled_ = false;
    return true;
  }
  // The session overwrites its scores when it goes on.
  std::vector<float> scores;
  if (work_.request.logprobs) {
    HEARTH_ASSIGN(const auto own, generation_->scores(limits));
    scores.assign(own.begin(), own.end());
  }
  HEARTH_ASSIGN(const auto text, generation_->next(limits));
  if (figures_.firstToken == std::chrono::nanoseconds::zero())
    figures_.firstToken = std::chrono::steady_clock::now() - work_.arrival;
  const bool isStop = generation_->isEnded() && generation_->result().ending == llm::Ending::kStop;
  if (!scores.empty() && !isStop)
    reply_.addScore(scoreOf(scores, generation_->tokens().back(), *work_.request.logprobs,
                            work_.model->model->tokenizer()));
  if (!callReader_) {
    if (text) reply_.addText(*text);
    return !generation_->isEnded();
  }
  if (text) add(callReader_->add(*text));
  if (generation_->isEnded()) add(callReader_->finish());
  return !generation_->isEnded();
}

void AnswerTask::add(llm::ToolCallReader::Piece piece) {
  reply_.addText(piece.text);
  for (const llm::ToolCall& call : piece.calls) {
    if (hasCalled_ && !work_.request.hasManyCalls) return;
    hasCalled_ = true;
    reply_.addCall(call);
  }
  // The session stays at the end of the call.
  if (hasCalled_ && !work_.request.hasManyCalls) static_cast<void>(generation_->cancel());
}

void AnswerTask::fail(const Error& error) {
  hasEnded_ = true;
  const ApiError shown = apiError(error);
  reply_.fail(shown);
  // What a session has computed before it fails stays right.
  giveBack();
}

void AnswerTask::end() {
  hasEnded_ = true;
  giveBack();
}

void AnswerTask::giveBack() {
  generation_.reset();
  if (taken_.conversation == nullptr) return;
  // Another process computes it where this fails.
  base::logged("Keeping the beginning of a prompt",
               [&] { static_cast<void>(taken_.conversation->session->keepPrefix()); });
  pool_.giveBack(std::exchange(taken_, {}).conversation);
}

}  // namespace hearth::llm_server
