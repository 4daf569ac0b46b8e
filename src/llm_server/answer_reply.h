// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "llm/generation.h"
#include "llm/tool_calls.h"
#include "llm_server/answer_request.h"
#include "llm_server/api_error.h"
#include "llm_server/http_exchange.h"
#include "llm_server/token_scores.h"

namespace hearth::llm_server {

// The tokens of a request and its answer.
struct AnswerUsage {
  size_t promptTokens = 0;
  size_t cachedTokens = 0;  // of the prompt, that were not computed for this request
  size_t tokens = 0;        // of the answer
};

// Writes an answer to its client as OpenAI's interface has it: as one JSON object, or piece by
// piece as server-sent events. Used by one thread at a time.
class AnswerReply {
 public:
  // `model`: its name.
  AnswerReply(std::shared_ptr<HttpExchange> exchange, const AnswerRequest& request,
              std::string model);

  // Another token, with its score where the request wants it.
  void addScore(TokenScore score);
  // More of the text: whole characters.
  void addText(std::string_view text);
  // Another call of a tool.
  void addCall(const llm::ToolCall& call);
  void finish(llm::Ending ending, const AnswerUsage& usage);
  // In place of what is missing: an event where the stream has begun.
  void fail(const ApiError& error);

 private:
  nlohmann::ordered_json object(const char* kind) const;
  nlohmann::ordered_json takeScores();
  nlohmann::ordered_json chatScores() const;
  nlohmann::ordered_json messageJson() const;
  nlohmann::ordered_json completionScores();
  nlohmann::ordered_json usageJson(const AnswerUsage& usage) const;
  void sendEvent(std::string_view data);
  void sendChoice(nlohmann::ordered_json choice);
  void beginStream();
  const char* reasonOf(llm::Ending ending) const;

  const std::shared_ptr<HttpExchange> exchange_;
  const bool isChat_;
  const bool isStream_;
  const bool hasUsage_;
  const bool hasScores_;
  const std::string model_;
  const std::string id_;
  const int64_t created_;
  std::string text_;  // of an answer that is not streamed
  size_t callCount_ = 0;
  std::vector<nlohmann::ordered_json> calls_;  // of an answer that is not streamed
  std::vector<TokenScore> scores_;             // that are not written yet
  size_t textOffset_ = 0;                      // of the next score's token
  bool hasBegun_ = false;
};

}  // namespace hearth::llm_server
