// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/task_thread.h"
#include "llm_server/answer_request.h"
#include "llm_server/answer_task.h"
#include "llm_server/api_error.h"
#include "llm_server/conversation_pool.h"
#include "llm_server/http_exchange.h"
#include "llm_server/metrics.h"
#include "llm_server/scheduler.h"
#include "llm_server/served_model.h"

namespace hearth::llm_server {

struct ChatServiceOptions {
  std::vector<std::shared_ptr<const ServedModel>> models;  // at least one
  ConversationPool::Options pool;
  size_t queue = 64;                     // requests at most that wait for a session
  std::chrono::milliseconds timeout{0};  // for a request, with the time that it waits; 0 = none
  std::string apiKey;                    // that requests have to say; empty = none
  // Conversations and answers that outgrow the context lose their oldest messages or tokens, but
  // for so many tokens at the beginning; absent: they are refused or end.
  std::optional<size_t> keep = {};
  std::function<size_t()> connections = {};  // open now, for the metrics
};

// What OpenAI's interface asks for: /v1/models, /v1/chat/completions, /v1/completions; and /health
// and /metrics. Text becomes tokens on one thread, answers are computed on another.
class ChatService {
 public:
  explicit ChatService(ChatServiceOptions options);
  // Answers that are being computed end.
  ~ChatService();
  ChatService(const ChatService&) = delete;
  ChatService& operator=(const ChatService&) = delete;

  // Replies now or later. Called by one thread.
  void handle(const std::shared_ptr<HttpExchange>& exchange);
  // The reply to what never becomes a request.
  HttpReply refusal(int status, const std::string& sentence);
  // From now on requests for answers are refused. Thread-safe.
  void beginStop() { isStopping_ = true; }

 private:
  ApiResult<HttpReply> replyTo(const std::shared_ptr<HttpExchange>& exchange);
  ApiResult<void> checkAccess(const HttpRequest& request) const;
  ApiResult<void> accept(const std::shared_ptr<HttpExchange>& exchange, bool isChat);
  ApiResult<AnswerWork> prepare(const std::shared_ptr<HttpExchange>& exchange, bool isChat) const;
  ApiResult<void> makeChatTokens(AnswerWork* work) const;
  ApiResult<std::shared_ptr<const ServedModel>> findModel(const std::string& name) const;
  HttpReply modelList() const;
  ApiResult<HttpReply> describeModel(const std::string& name) const;
  HttpReply health() const;
  HttpReply metricsText() const;
  void leave(const HttpExchange& exchange);

  const ChatServiceOptions options_;
  Metrics metrics_;
  ConversationPool pool_;
  Scheduler scheduler_;
  std::atomic<size_t> accepted_ = 0;  // requests for answers that have not ended
  std::atomic<bool> isStopping_ = false;
  std::thread computing_;
  base::TaskThread preparing_;
};

}  // namespace hearth::llm_server
