// SPDX-License-Identifier: Apache-2.0
// What clients ask for, as OpenAI's interface says it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "llm/chat_prompt.h"
#include "llm/json_schema.h"
#include "llm/sampler.h"
#include "llm/template_value.h"
#include "llm_server/api_error.h"

namespace hearth::llm_server {

// Whether an answer may call tools.
enum class ToolChoice { kAuto, kNone, kRequired };

// The body of a request for /v1/chat/completions or /v1/completions.
struct AnswerRequest {
  bool isChat = true;
  std::string model;                       // empty where the request names none
  std::vector<llm::ChatMessage> messages;  // of a chat
  std::string prompt;                      // of a completion, as a text
  std::vector<int32_t> promptTokens;       // or as tokens
  size_t maxTokens = 0;                    // 0 = as many as the context has room for
  std::vector<std::string> stops;
  llm::SamplerChoice sampler;
  std::shared_ptr<const llm::JsonSchema> format;  // of the answer; null = any text
  llm::TemplateValue tools;                       // that the model may call: a list; None = none
  std::vector<std::string> toolNames;
  ToolChoice toolChoice = ToolChoice::kAuto;
  std::string requiredTool;  // the only one that may be called; empty = any
  bool hasManyCalls = true;  // whether an answer may have more than one call
  bool isStream = false;
  bool hasUsage = false;             // at the end of a stream
  std::optional<uint32_t> logprobs;  // how many likely tokens beside the chosen one; absent = off
};

// Reads the JSON text of a body. Members that are not known are skipped; known ones that ask for
// what this server lacks are refused. All errors have the status 400.
ApiResult<AnswerRequest> readChatRequest(std::string_view body);
ApiResult<AnswerRequest> readCompletionRequest(std::string_view body);

}  // namespace hearth::llm_server
