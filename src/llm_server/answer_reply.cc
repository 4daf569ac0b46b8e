// SPDX-License-Identifier: Apache-2.0
#include "llm_server/answer_reply.h"

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "llm/utf8.h"

namespace hearth::llm_server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kEventStream = "text/event-stream";

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string randomId(std::string id) {
  std::random_device device;
  for (int i = 0; i < 3; ++i) id += base::formatText("{:08x}", device());
  return id;
}

Json entryJson(const TokenScore::Entry& entry) {
  Json bytes = Json::array();
  for (const char c : entry.bytes) bytes.push_back(static_cast<uint8_t>(c));
  return {{"token", llm::replaceInvalidUtf8(entry.bytes)},
          {"logprob", entry.logarithm},
          {"bytes", std::move(bytes)}};
}

}  // namespace

AnswerReply::AnswerReply(std::shared_ptr<HttpExchange> exchange, const AnswerRequest& request,
                         std::string model)
    : exchange_(std::move(exchange)),
      isChat_(request.isChat),
      isStream_(request.isStream),
      hasUsage_(request.hasUsage),
      hasScores_(request.logprobs.has_value()),
      model_(std::move(model)),
      id_(randomId(isChat_ ? "chatcmpl-" : "cmpl-")),
      created_(std::chrono::duration_cast<std::chrono::seconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count()) {}

Json AnswerReply::object(const char* kind) const {
  return {{"id", id_}, {"object", kind}, {"created", created_}, {"model", model_}};
}

Json AnswerReply::usageJson(const AnswerUsage& usage) const {
  return {{"prompt_tokens", usage.promptTokens},
          {"completion_tokens", usage.tokens},
          {"total_tokens", usage.promptTokens + usage.tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cachedTokens}}}};
}

Json AnswerReply::chatScores() const {
  Json content = Json::array();
  for (const TokenScore& score : scores_) {
    Json entry = entryJson(score.chosen);
    Json likely = Json::array();
    for (const TokenScore::Entry& one : score.likely) likely.push_back(entryJson(one));
    entry["top_logprobs"] = std::move(likely);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json AnswerReply::completionScores() {
  Json tokens = Json::array();
  Json logarithms = Json::array();
  Json likely = Json::array();
  Json offsets = Json::array();
  for (const TokenScore& score : scores_) {
    tokens.push_back(llm::replaceInvalidUtf8(score.chosen.bytes));
    logarithms.push_back(score.chosen.logarithm);
    Json entries = Json::object();
    for (const TokenScore::Entry& one : score.likely)
      entries[llm::replaceInvalidUtf8(one.bytes)] = one.logarithm;
    likely.push_back(std::move(entries));
    offsets.push_back(textOffset_);
    textOffset_ += score.chosen.bytes.size();
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(logarithms)},
          {"top_logprobs", std::move(likely)},
          {"text_offset", std::move(offsets)}};
}

// Those of the tokens since the last call; null where the request wants none.
Json AnswerReply::takeScores() {
  if (!hasScores_) return nullptr;
  Json json = isChat_ ? chatScores() : completionScores();
  scores_.clear();
  return json;
}

void AnswerReply::sendEvent(std::string_view data) {
  exchange_->write(base::formatText("data: {}\n\n", data));
}

// An event with one choice.
void AnswerReply::sendChoice(Json choice) {
  Json event = object(isChat_ ? "chat.completion.chunk" : "text_completion");
  event["choices"] = Json::array({std::move(choice)});
  // Clients that ask for it expect the member in all events.
  if (hasUsage_) event["usage"] = nullptr;
  sendEvent(dumped(event));
}

void AnswerReply::beginStream() {
  if (std::exchange(hasBegun_, true)) return;
  exchange_->beginStream(kEventStream);
  if (isChat_)
    sendChoice({{"index", 0},
                {"delta", {{"role", "assistant"}, {"content", ""}}},
                {"logprobs", nullptr},
                {"finish_reason", nullptr}});
}

void AnswerReply::addScore(TokenScore score) {
  scores_.push_back(std::move(score));
}

void AnswerReply::addText(std::string_view text) {
  if (!isStream_) {
    text_ += text;
    return;
  }
  beginStream();
  if (text.empty()) return;
  Json choice = {{"index", 0}};
  if (isChat_)
    choice["delta"] = {{"content", text}};
  else
    choice["text"] = text;
  choice["logprobs"] = takeScores();
  choice["finish_reason"] = nullptr;
  sendChoice(std::move(choice));
}

Json AnswerReply::messageJson() const {
  Json message = {{"role", "assistant"}, {"content", text_}, {"refusal", nullptr}};
  if (calls_.empty()) return message;
  if (text_.empty()) message["content"] = nullptr;
  message["tool_calls"] = calls_;
  return message;
}

void AnswerReply::addCall(const llm::ToolCall& call) {
  Json json = {{"id", randomId("call_")},
               {"type", "function"},
               {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
  const size_t index = callCount_++;
  if (!isStream_) {
    calls_.push_back(std::move(json));
    return;
  }
  beginStream();
  Json entry = {{"index", index}};
  entry.update(json);
  sendChoice({{"index", 0},
              {"delta", {{"tool_calls", Json::array({std::move(entry)})}}},
              {"logprobs", takeScores()},
              {"finish_reason", nullptr}});
}

const char* AnswerReply::reasonOf(llm::Ending ending) const {
  if (ending == llm::Ending::kMaxTokens || ending == llm::Ending::kContext) return "length";
  return callCount_ > 0 ? "tool_calls" : "stop";
}

void AnswerReply::finish(llm::Ending ending, const AnswerUsage& usage) {
  if (isStream_) {
    beginStream();
    Json choice = {{"index", 0}};
    if (isChat_)
      choice["delta"] = Json::object();
    else
      choice["text"] = "";
    choice["logprobs"] = scores_.empty() ? Json(nullptr) : takeScores();
    choice["finish_reason"] = reasonOf(ending);
    sendChoice(std::move(choice));
    if (hasUsage_) {
      Json event = object(isChat_ ? "chat.completion.chunk" : "text_completion");
      event["choices"] = Json::array();
      event["usage"] = usageJson(usage);
      sendEvent(dumped(event));
    }
    sendEvent("[DONE]");
    exchange_->endStream();
    return;
  }
  Json choice = {{"index", 0}};
  if (isChat_)
    choice["message"] = messageJson();
  else
    choice["text"] = text_;
  choice["logprobs"] = takeScores();
  choice["finish_reason"] = reasonOf(ending);
  Json whole = object(isChat_ ? "chat.completion" : "text_completion");
  whole["choices"] = Json::array({std::move(choice)});
  whole["usage"] = usageJson(usage);
  exchange_->reply({.body = dumped(whole)});
}

void AnswerReply::fail(const ApiError& error) {
  if (!hasBegun_) {
    exchange_->reply(toReply(error));
    return;
  }
  sendEvent(toJson(error));
  exchange_->endStream();
}

}  // namespace hearth::llm_server
