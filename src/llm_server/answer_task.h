// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "llm/generation.h"
#include "llm/sampler.h"
#include "llm/tool_calls.h"
#include "llm_server/answer_reply.h"
#include "llm_server/answer_request.h"
#include "llm_server/conversation_pool.h"
#include "llm_server/metrics.h"
#include "llm_server/scheduler.h"
#include "llm_server/served_model.h"

namespace hearth::llm_server {

// What an answer is made of.
struct AnswerWork {
  std::shared_ptr<HttpExchange> exchange;
  AnswerRequest request;
  std::shared_ptr<const ServedModel> model;
  std::vector<int32_t> tokens;                // of the prompt
  const llm::ToolFormat* calls = nullptr;     // which the answer may have; null = none
  size_t marked = 0;                          // of them, that other prompts begin with, too
  std::optional<size_t> keep = std::nullopt;  // of them, where the context is full; absent: it ends
  std::chrono::steady_clock::time_point arrival;
  std::chrono::steady_clock::time_point deadline;
};

// Answers one request in a session of the pool, step by step: a run of a prefill signature, or a
// token.
class AnswerTask : public Task {
 public:
  // Pool and metrics must outlive it. `onEnd` is called when the task is destroyed.
  AnswerTask(AnswerWork work, ConversationPool* pool, Metrics* metrics,
             std::function<void()> onEnd);
  ~AnswerTask() override;

  bool isWanted() override;
  Start start() override;
  bool step() override;

 private:
  Result<bool> advance();
  void add(llm::ToolCallReader::Piece piece);
  void end();
  void fail(const Error& error);
  void giveBack();

  AnswerWork work_;
  ConversationPool& pool_;
  Metrics& metrics_;
  const std::function<void()> onEnd_;
  AnswerReply reply_;
  llm::Sampler sampler_;
  ConversationPool::Taken taken_;
  uint64_t storedBefore_ = 0;  // tokens from the store, that the session has had
  std::optional<llm::Generation> generation_;
  std::optional<llm::ToolCallReader> callReader_;
  bool hasCalled_ = false;
  bool isPrefilled_ = false;
  bool hasEnded_ = false;
  Metrics::Answer figures_;
};

}  // namespace hearth::llm_server
