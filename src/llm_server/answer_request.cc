// SPDX-License-Identifier: Apache-2.0
#include "llm_server/answer_request.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <utility>

#include "llm/chat_template.h"
#include "llm/conversation.h"
#include "llm/json_reader.h"
#include "llm/tool_calls.h"

namespace hearth::llm_server {
namespace {

using Kind = llm::JsonReader::Kind;

constexpr size_t kMaxMessages = 10'000;
constexpr size_t kMaxStops = 16;
constexpr size_t kMaxTools = 1000;
constexpr size_t kMaxPromptTokens = size_t{1} << 24;
constexpr uint32_t kMostLikelyTokens = 20;
constexpr double kHottest = 100;
// Of `repetition_penalty`.
constexpr double kLeastPenalty = 0.1;
constexpr double kMostPenalty = 10;
constexpr size_t kCompletionTokens = 16;  // as OpenAI's interface has it

// Reads the members of one request. All that JsonReader refuses is refused with its sentence.
class Body {
 public:
  Body(std::string_view text, AnswerRequest* request)
      : text_(text), reader_(text), request_(*request) {}

  ApiResult<void> read() {
    HEARTH_TRY(passed(reader_.beginObject()));
    for (;;) {
      HEARTH_ASSIGN(const bool isThere, passed(reader_.nextKey(&key_)));
      if (!isThere) break;
      HEARTH_ASSIGN(const Kind kind, passed(reader_.peek()));
      // As if it were not there.
      if (kind == Kind::kNull)
        HEARTH_TRY(passed(reader_.skip()));
      else
        HEARTH_TRY(readMember());
    }
    return passed(reader_.expectEnd());
  }

 private:
  template <typename T>
  ApiResult<T> passed(Result<T> result) const {
    if (result) return *result;
    return std::unexpected(
        ApiError{.message = "The body of the request: " + result.error().message()});
  }
  static ApiResult<void> passed(Status status) {
    if (status) return {};
    return std::unexpected(
        ApiError{.message = "The body of the request: " + status.error().message()});
  }

  ApiResult<void> readMember() {
    if (key_ == "model") return readText(&request_.model);
    if (key_ == "messages" && request_.isChat) return readMessages();
    if (key_ == "prompt" && !request_.isChat) return readPrompt();
    if (key_ == "max_tokens" || (key_ == "max_completion_tokens" && request_.isChat))
      return readCount(&request_.maxTokens);
    if (key_ == "stop") return readStops();
    if (key_ == "stream") return readFlag(&request_.isStream);
    if (key_ == "stream_options") return readStreamOptions();
    if (key_ == "temperature") return readFraction(kHottest, &request_.sampler.temperature);
    if (key_ == "top_p") return readFraction(1, &request_.sampler.topP);
    if (key_ == "min_p") return readFraction(1, &request_.sampler.minP);
    if (key_ == "presence_penalty") return readNumber(-2, 2, &request_.sampler.presencePenalty);
    if (key_ == "frequency_penalty") return readNumber(-2, 2, &request_.sampler.frequencyPenalty);
    if (key_ == "repetition_penalty")
      return readNumber(kLeastPenalty, kMostPenalty, &request_.sampler.repetitionPenalty);
    if (key_ == "top_k") return readTopK();
    if (key_ == "seed") return readSeed();
    if (key_ == "logprobs") return readLogprobs();
    if (key_ == "top_logprobs" && request_.isChat) return readLikelyTokens();
    if (key_ == "tools" && request_.isChat) return readTools();
    if (key_ == "tool_choice" && request_.isChat) return readToolChoice();
    if (key_ == "parallel_tool_calls" && request_.isChat) return readFlag(&request_.hasManyCalls);
    return readRestricted();
  }

  // What is only understood where it says what happens anyway.
  ApiResult<void> readRestricted() {
    if (key_ == "n" || key_ == "best_of") return expectNumber(1);
    if (key_ == "echo") return expectFlag(false);
    if (key_ == "functions" || key_ == "logit_bias" || key_ == "modalities") return expectNothing();
    if (key_ == "response_format") return readFormat();
    if (key_ == "suffix" || key_ == "audio") return refuse(key_, "'{}' is not supported.", key_);
    return passed(reader_.skip());
  }

  ApiResult<void> expectKind(Kind kind, const char* what) {
    HEARTH_ASSIGN(const Kind found, passed(reader_.peek()));
    if (found != kind) return refuse(key_, "'{}' has to be {}.", key_, what);
    return {};
  }

  ApiResult<void> readText(std::string* text) {
    HEARTH_TRY(expectKind(Kind::kString, "a string"));
    return passed(reader_.readString(text));
  }

  ApiResult<void> readFlag(bool* flag) {
    HEARTH_TRY(expectKind(Kind::kBool, "true or false"));
    HEARTH_ASSIGN(*flag, passed(reader_.readBool()));
    return {};
  }

  ApiResult<int64_t> readInteger(int64_t least, int64_t most) {
    HEARTH_TRY(expectKind(Kind::kNumber, "a number"));
    const auto number = reader_.readInteger();
    if (!number || *number < least || *number > most)
      return refuse(key_, "'{}' has to be a whole number from {} to {}.", key_, least, most);
    return *number;
  }

  ApiResult<void> readCount(size_t* count) {
    HEARTH_ASSIGN(const int64_t number, readInteger(1, std::numeric_limits<int32_t>::max()));
    *count = static_cast<size_t>(number);
    return {};
  }

  ApiResult<void> readFraction(double most, std::optional<float>* fraction) {
    return readNumber(0, most, fraction);
  }

  ApiResult<void> readNumber(double least, double most, std::optional<float>* fraction) {
    HEARTH_TRY(expectKind(Kind::kNumber, "a number"));
    HEARTH_ASSIGN(const double number, passed(reader_.readNumber()));
    if (!(number >= least && number <= most))
      return refuse(key_, "'{}' is {}; it has to be from {} to {}.", key_, number, least, most);
    *fraction = static_cast<float>(number);
    return {};
  }

  ApiResult<void> readTopK() {
    HEARTH_ASSIGN(const int64_t number, readInteger(0, std::numeric_limits<int32_t>::max()));
    request_.sampler.topK = static_cast<uint32_t>(number);
    return {};
  }

  ApiResult<void> readSeed() {
    HEARTH_ASSIGN(const int64_t number, readInteger(std::numeric_limits<int64_t>::min(),
                                                    std::numeric_limits<int64_t>::max()));
    request_.sampler.seed = static_cast<uint64_t>(number);
    return {};
  }

  // Chats say whether, and how many with `top_logprobs`; completions say how many.
  ApiResult<void> readLogprobs() {
    if (!request_.isChat) return readLikelyTokens();
    bool isWanted = false;
    HEARTH_TRY(readFlag(&isWanted));
    if (isWanted) request_.logprobs = request_.logprobs.value_or(0);
    hasLogprobs_ = isWanted;
    return {};
  }

  ApiResult<void> readLikelyTokens() {
    HEARTH_ASSIGN(const int64_t number, readInteger(0, kMostLikelyTokens));
    request_.logprobs = static_cast<uint32_t>(number);
    return {};
  }

  ApiResult<void> expectNumber(double expected) {
    HEARTH_TRY(expectKind(Kind::kNumber, "a number"));
    HEARTH_ASSIGN(const double number, passed(reader_.readNumber()));
    if (number == expected) return {};
    return refuse(key_, "'{}' is {}; this server supports {} only.", key_, number, expected);
  }

  ApiResult<void> expectFlag(bool expected) {
    bool flag = expected;
    HEARTH_TRY(readFlag(&flag));
    if (flag == expected) return {};
    return refuse(key_, "'{}' is {}, which this server does not support.", key_, flag);
  }

  // An object or a list without elements.
  ApiResult<void> expectNothing() {
    HEARTH_ASSIGN(const Kind kind, passed(reader_.peek()));
    bool isThere = kind != Kind::kObject && kind != Kind::kArray;
    if (kind == Kind::kObject) {
      HEARTH_TRY(passed(reader_.beginObject()));
      std::string key;
      HEARTH_ASSIGN(isThere, passed(reader_.nextKey(&key)));
    } else if (kind == Kind::kArray) {
      HEARTH_TRY(passed(reader_.beginArray()));
      HEARTH_ASSIGN(isThere, passed(reader_.nextElement()));
    }
    if (isThere) return refuse(key_, "'{}' is not supported.", key_);
    return {};
  }

  ApiResult<void> readFormat() {
    HEARTH_TRY(expectKind(Kind::kObject, "an object"));
    request_.format = nullptr;
    std::string type;
    std::string_view schema;
    HEARTH_TRY(readObject([&](const std::string& key) -> ApiResult<void> {
      if (key == "type") return passed(reader_.readString(&type));
      if (key != "json_schema") return passed(reader_.skip());
      HEARTH_TRY(expectKind(Kind::kObject, "an object with a 'json_schema' that is one"));
      return readObject([&](const std::string& member) -> ApiResult<void> {
        if (member != "schema") return passed(reader_.skip());
        HEARTH_ASSIGN(schema, readRaw());
        return {};
      });
    }));
    if (type == "text") return {};
    if (type != "json_object" && type != "json_schema")
      return refuse(key_,
                    "The response format '{}' is not supported; text, json_object and json_schema "
                    "are.",
                    type);
    if (type == "json_schema" && schema.empty())
      return refuse(key_, "The response format json_schema has no 'schema'.");
    auto parsed =
        type == "json_object" ? llm::JsonSchema::anyObject() : llm::JsonSchema::parse(schema);
    if (!parsed) return refuse(key_, "{}", parsed.error().message());
    request_.format = std::make_shared<const llm::JsonSchema>(*std::move(parsed));
    return {};
  }

  ApiResult<void> readTools() {
    HEARTH_TRY(expectKind(Kind::kArray, "a list"));
    HEARTH_ASSIGN(request_.tools, readValue());
    auto names = llm::toolNames(request_.tools);
    if (!names) return refuse(key_, "{}", names.error().message());
    request_.toolNames = *std::move(names);
    if (request_.toolNames.size() > kMaxTools)
      return refuse(key_, "There are more than {} tools.", kMaxTools);
    if (request_.toolNames.empty()) request_.tools = {};
    return {};
  }

  // A word, or the function that is to be called.
  ApiResult<void> readToolChoice() {
    request_.requiredTool.clear();
    HEARTH_ASSIGN(const llm::TemplateValue choice, readValue());
    if (const std::string* const word = choice.asText()) {
      if (*word != "auto" && *word != "none" && *word != "required")
        return refuse(key_, "'tool_choice' is '{}'; it may be auto, none, required or a function.",
                      *word);
      request_.toolChoice = *word == "auto"   ? ToolChoice::kAuto
                            : *word == "none" ? ToolChoice::kNone
                                              : ToolChoice::kRequired;
      return {};
    }
    const auto names = [&]() -> Result<std::vector<std::string>> {
      HEARTH_ASSIGN(const llm::TemplateValue list, llm::TemplateValue::list({choice}));
      return llm::toolNames(list);
    }();
    if (!names)
      return refuse(key_,
                    "'tool_choice' has to be a text, or an object with a 'function' that has "
                    "a 'name'.");
    request_.toolChoice = ToolChoice::kRequired;
    request_.requiredTool = names->front();
    return {};
  }

  ApiResult<llm::TemplateValue> readValue() {
    HEARTH_ASSIGN(const std::string_view text, readRaw());
    auto value = llm::templateValueOfJson(text);
    if (!value) return refuse(key_, "'{}': {}", key_, value.error().message());
    return *std::move(value);
  }

  // The JSON text of the next value.
  ApiResult<std::string_view> readRaw() {
    const size_t begin = reader_.position();
    HEARTH_TRY(passed(reader_.skip()));
    return text_.substr(begin, reader_.position() - begin);
  }

  ApiResult<void> readStreamOptions() {
    HEARTH_TRY(expectKind(Kind::kObject, "an object"));
    return readObject([&](const std::string& key) -> ApiResult<void> {
      if (key == "include_usage") return readFlag(&request_.hasUsage);
      return passed(reader_.skip());
    });
  }

  // Calls `member` with each key, whose value it reads.
  template <typename Member>
  ApiResult<void> readObject(Member member) {
    HEARTH_TRY(passed(reader_.beginObject()));
    std::string key;
    for (;;) {
      HEARTH_ASSIGN(const bool isThere, passed(reader_.nextKey(&key)));
      if (!isThere) return {};
      HEARTH_TRY(member(key));
    }
  }

  // Calls `element` for each value, which it reads.
  template <typename Element>
  ApiResult<void> readArray(Element element) {
    HEARTH_TRY(passed(reader_.beginArray()));
    for (;;) {
      HEARTH_ASSIGN(const bool isThere, passed(reader_.nextElement()));
      if (!isThere) return {};
      HEARTH_TRY(element());
    }
  }

  ApiResult<void> readStops() {
    request_.stops.clear();
    const auto add = [&]() -> ApiResult<void> {
      std::string stop;
      HEARTH_TRY(readText(&stop));
      if (stop.empty()) return refuse(key_, "'stop' has a text of no characters.");
      if (request_.stops.size() == kMaxStops)
        return refuse(key_, "'stop' has more than {} texts.", kMaxStops);
      request_.stops.push_back(std::move(stop));
      return {};
    };
    HEARTH_ASSIGN(const Kind kind, passed(reader_.peek()));
    return kind == Kind::kArray ? readArray(add) : add();
  }

  ApiResult<void> readPrompt() {
    request_.prompt.clear();
    request_.promptTokens.clear();
    HEARTH_ASSIGN(const Kind kind, passed(reader_.peek()));
    if (kind != Kind::kArray) return readText(&request_.prompt);
    size_t texts = 0;
    return readArray([&]() -> ApiResult<void> {
      HEARTH_ASSIGN(const Kind element, passed(reader_.peek()));
      if (element == Kind::kString && texts++ == 0 && request_.promptTokens.empty())
        return readText(&request_.prompt);
      if (element != Kind::kNumber || texts != 0 ||
          request_.promptTokens.size() == kMaxPromptTokens)
        return refuse(key_, "'prompt' has to be one text, or a list with one text or of tokens.");
      HEARTH_ASSIGN(const int64_t token, readInteger(0, std::numeric_limits<int32_t>::max()));
      request_.promptTokens.push_back(static_cast<int32_t>(token));
      return {};
    });
  }

  ApiResult<void> readMessages() {
    request_.messages.clear();
    HEARTH_TRY(expectKind(Kind::kArray, "a list"));
    return readArray([&]() -> ApiResult<void> {
      if (request_.messages.size() == kMaxMessages)
        return refuse(key_, "There are more than {} messages.", kMaxMessages);
      llm::ChatMessage message;
      HEARTH_TRY(expectKind(Kind::kObject, "a list of objects"));
      HEARTH_TRY(readObject([&](const std::string& key) -> ApiResult<void> {
        if (key == "role") return passed(reader_.readString(&message.role));
        if (key == "content") return readContent(&message.content);
        if (key == "tool_calls") return readCalls(&message);
        if (key == "name" || key == "tool_call_id") {
          HEARTH_ASSIGN(llm::TemplateValue value, readValue());
          if (value.asText() != nullptr) message.members.emplace_back(key, std::move(value));
          return {};
        }
        if (key == "function_call") {
          HEARTH_ASSIGN(const Kind kind, passed(reader_.peek()));
          if (kind != Kind::kNull) return expectNothing();
        }
        return passed(reader_.skip());
      }));
      if (message.role == "developer") message.role = "system";
      if (message.role != "system" && message.role != "user" && message.role != "assistant" &&
          message.role != "tool")
        return refuse(key_,
                      "Message {} has the role '{}'; it may be system, user, assistant or tool.",
                      request_.messages.size() + 1, message.role);
      request_.messages.push_back(std::move(message));
      return {};
    });
  }

  ApiResult<void> readCalls(llm::ChatMessage* message) {
    HEARTH_ASSIGN(const llm::TemplateValue value, readValue());
    if (value.isNone()) return {};
    const auto names = llm::toolNames(value);
    if (!names) return refuse(key_, "'tool_calls': {}", names.error().message());
    if (names->empty()) return {};
    auto calls = llm::toolCallsForTemplate(value);
    if (!calls) return refuse(key_, "'tool_calls': {}", calls.error().message());
    message->members.emplace_back("tool_calls", *std::move(calls));
    return {};
  }

  // A text, or a list of its parts.
  ApiResult<void> readContent(std::string* content) {
    content->clear();
    HEARTH_ASSIGN(const Kind kind, passed(reader_.peek()));
    if (kind == Kind::kNull) return passed(reader_.skip());
    if (kind != Kind::kArray) return readText(content);
    return readArray([&]() -> ApiResult<void> {
      std::string type;
      std::string text;
      HEARTH_TRY(expectKind(Kind::kObject, "texts or objects"));
      HEARTH_TRY(readObject([&](const std::string& key) -> ApiResult<void> {
        if (key == "type") return passed(reader_.readString(&type));
        if (key == "text") return passed(reader_.readString(&text));
        return passed(reader_.skip());
      }));
      if (type != "text")
        return refuse(key_, "A message has a part of the type '{}'; 'text' is supported.", type);
      *content += text;
      return {};
    });
  }

 public:
  // Once all members are known.
  ApiResult<void> checkRequiredTool() const {
    const std::string& name = request_.requiredTool;
    if (request_.tools.isNone())
      return refuse("tool_choice", "'tool_choice' asks for a call, and there are no tools.");
    if (!name.empty() && !std::ranges::contains(request_.toolNames, name))
      return refuse("tool_choice", "'tool_choice' asks for '{}', which is none of the tools.",
                    name);
    if (request_.format != nullptr)
      return refuse("tool_choice",
                    "'tool_choice' asks for a call, and 'response_format' for JSON.");
    return {};
  }

  ApiResult<void> finish() {
    if (request_.isChat && request_.messages.empty())
      return refuse("messages", "The request has no messages.");
    if (!request_.isChat && request_.prompt.empty() && request_.promptTokens.empty())
      return refuse("prompt", "The request has no prompt: there is nothing to continue.");
    if (request_.isChat && request_.logprobs && !hasLogprobs_)
      return refuse("top_logprobs", "'top_logprobs' needs 'logprobs' to be true.");
    if (request_.toolChoice == ToolChoice::kRequired) HEARTH_TRY(checkRequiredTool());
    if (!request_.isChat && request_.maxTokens == 0) request_.maxTokens = kCompletionTokens;
    return {};
  }

 private:
  const std::string_view text_;
  llm::JsonReader reader_;
  AnswerRequest& request_;
  std::string key_;  // of the member that is being read
  bool hasLogprobs_ = false;
};

ApiResult<AnswerRequest> readRequest(std::string_view body, bool isChat) {
  AnswerRequest request{.isChat = isChat};
  Body reader(body, &request);
  HEARTH_TRY(reader.read());
  HEARTH_TRY(reader.finish());
  return request;
}

}  // namespace

ApiResult<AnswerRequest> readChatRequest(std::string_view body) {
  return readRequest(body, true);
}

ApiResult<AnswerRequest> readCompletionRequest(std::string_view body) {
  return readRequest(body, false);
}

}  // namespace hearth::llm_server
