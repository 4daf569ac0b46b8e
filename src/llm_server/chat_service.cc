// SPDX-License-Identifier: Apache-2.0
#include "llm_server/chat_service.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "base/process_memory.h"
#include "llm/text_window.h"
#include "llm/thrown.h"

namespace hearth::llm_server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kModels = "/v1/models";
constexpr std::string_view kChat = "/v1/chat/completions";
constexpr std::string_view kCompletions = "/v1/completions";
constexpr std::string_view kBearer = "Bearer ";
constexpr std::string_view kJsonType = "application/json";
constexpr std::chrono::hours kNoTimeout{24 * 365};

Json modelJson(const ServedModel& model) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "hearth"},
          {"context_length", model.context}};
}

// Takes the same time wherever the two differ.
bool isSame(std::string_view left, std::string_view right) {
  unsigned difference = left.size() == right.size() ? 0 : 1;
  for (size_t i = 0; i < left.size(); ++i)
    difference |= static_cast<unsigned char>(left[i]) ^
                  static_cast<unsigned char>(right.empty() ? 0 : right[i % right.size()]);
  return difference == 0;
}

bool isJsonType(std::string_view type) {
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  return std::ranges::equal(type, kJsonType, {}, [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
}

ApiError refusalOf(int status, std::string code, std::string message) {
  return {.status = status, .message = std::move(message), .code = std::move(code)};
}

uint64_t randomSeed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// The result, or an error that names the member of the request that it comes from.
template <typename T>
ApiResult<T> forMember(const char* member, Result<T> result) {
  if (result) return *std::move(result);
  ApiError error = apiError(result.error());
  error.param = member;
  return std::unexpected(std::move(error));
}

// The messages that a conversation is told first.
std::vector<llm::ChatMessage> leadingSystem(const std::vector<llm::ChatMessage>& messages) {
  const auto end = std::ranges::find_if(
      messages, [](const llm::ChatMessage& message) { return message.role != "system"; });
  return {messages.begin(), end};
}

}  // namespace

ChatService::ChatService(ChatServiceOptions options)
    : options_(std::move(options)),
      pool_(options_.pool),
      computing_([this] { scheduler_.run(); }),
      preparing_("hearth-prompts", base::TaskThread::Priority::kNormal, SIZE_MAX) {}

ChatService::~ChatService() {
  preparing_.stop(false);
  scheduler_.stop();
  computing_.join();
}

void ChatService::handle(const std::shared_ptr<HttpExchange>& exchange) {
  const auto reply = replyTo(exchange);
  if (!reply) {
    exchange->reply(toReply(reply.error()));
  } else if (reply->status != 0) {
    exchange->reply(*reply);
  } else {
    return;
  }
  metrics_.countReply(exchange->status());
}

HttpReply ChatService::refusal(int status, const std::string& sentence) {
  metrics_.countReply(status);
  return toReply(refusalOf(status, "", sentence));
}

// A reply with the status 0 comes later.
ApiResult<HttpReply> ChatService::replyTo(const std::shared_ptr<HttpExchange>& exchange) {
  const HttpRequest& request = exchange->request();
  const std::string& path = request.path;
  const bool isChat = path == kChat;
  const bool isAnswer = isChat || path == kCompletions;
  const bool isModel =
      path.starts_with(kModels) && path.size() > kModels.size() + 1 && path[kModels.size()] == '/';
  if (!isAnswer && !isModel && path != kModels && path != "/health" && path != "/metrics")
    return std::unexpected(
        refusalOf(404, "not_found", base::formatText("There is nothing at {}.", path)));
  const char* const method = isAnswer ? "POST" : "GET";
  if (request.method != method)
    return std::unexpected(refusalOf(
        405, "method_not_allowed",
        base::formatText("{} takes the method {}, not {}.", path, method, request.method)));
  if (path == "/health") return health();
  HEARTH_TRY(checkAccess(request));
  if (path == kModels) return modelList();
  if (isModel) return describeModel(path.substr(kModels.size() + 1));
  if (path == "/metrics") return metricsText();
  HEARTH_TRY(accept(exchange, isChat));
  return HttpReply{.status = 0};
}

ApiResult<void> ChatService::checkAccess(const HttpRequest& request) const {
  // A page in a browser could otherwise use the server of whoever looks at it.
  if (!request.header("origin").empty())
    return std::unexpected(
        refusalOf(403, "origin_not_allowed", "Requests of web pages are not answered."));
  if (options_.apiKey.empty()) return {};
  std::string_view key = request.header("authorization");
  if (!key.starts_with(kBearer) || !isSame(key.substr(kBearer.size()), options_.apiKey))
    return std::unexpected(
        refusalOf(401, "invalid_api_key", "The request does not say the API key of the server."));
  return {};
}

ApiResult<void> ChatService::accept(const std::shared_ptr<HttpExchange>& exchange, bool isChat) {
  if (!isJsonType(exchange->request().header("content-type")))
    return std::unexpected(refusalOf(415, "unsupported_media_type",
                                     "The type of the request's body is not application/json."));
  if (isStopping_)
    return std::unexpected(ApiError{.status = 503,
                                    .message = "The server is ending.",
                                    .type = "server_error",
                                    .code = "server_ending"});
  const size_t most = options_.pool.sessions + options_.queue;
  if (accepted_ >= most)
    return std::unexpected(ApiError{
        .status = 429,
        .message = base::formatText("{} requests are being answered or wait for it.", most),
        .type = "rate_limit_error",
        .code = "queue_full"});
  ++accepted_;
  const auto work = [this, exchange, isChat] {
    auto prepared =
        llm::returned([&]() -> Result<ApiResult<AnswerWork>> { return prepare(exchange, isChat); });
    const auto refused = [&](const ApiError& error) {
      exchange->reply(toReply(error));
      leave(*exchange);
    };
    if (!prepared) return refused(apiError(prepared.error()));
    if (!*prepared) return refused(prepared->error());
    scheduler_.add(std::make_unique<AnswerTask>(*std::move(*prepared), &pool_, &metrics_,
                                                [this, exchange] { leave(*exchange); }));
  };
  if (preparing_.post(work)) return {};
  --accepted_;
  return std::unexpected(apiError(
      Error(ErrorCode::kResourceExhaustedTransient, "No thread can be started for the request.")));
}

void ChatService::leave(const HttpExchange& exchange) {
  if (exchange.status() != 0) metrics_.countReply(exchange.status());
  --accepted_;
}

ApiResult<std::shared_ptr<const ServedModel>> ChatService::findModel(
    const std::string& name) const {
  if (name.empty() && options_.models.size() == 1) return options_.models.front();
  const auto found = std::ranges::find(
      options_.models, name, [](const auto& model) -> const auto& { return model->name; });
  if (found != options_.models.end()) return *found;
  ApiError error =
      refusalOf(404, "model_not_found",
                base::formatText("There is no model '{}'; {} lists all.", name, kModels));
  error.param = "model";
  return std::unexpected(std::move(error));
}

ApiResult<AnswerWork> ChatService::prepare(const std::shared_ptr<HttpExchange>& exchange,
                                           bool isChat) const {
  AnswerWork work{.exchange = exchange, .arrival = std::chrono::steady_clock::now()};
  const auto timeout = options_.timeout.count() != 0 ? options_.timeout : kNoTimeout;
  work.deadline = work.arrival + timeout;
  const std::string body = std::move(exchange->request().body);
  HEARTH_ASSIGN(work.request, isChat ? readChatRequest(body) : readCompletionRequest(body));
  AnswerRequest& request = work.request;
  HEARTH_ASSIGN(work.model, findModel(request.model));
  const ServedModel& model = *work.model;
  if (!request.sampler.seed) request.sampler.seed = randomSeed();
  work.tokens = std::move(request.promptTokens);
  if (isChat) {
    HEARTH_TRY(makeChatTokens(&work));
  } else if (work.tokens.empty()) {
    HEARTH_ASSIGN(
        work.tokens,
        forMember("prompt", llm::textTokens(model.startTokens, model.model->tokenizer(),
                                            request.prompt, llm::SpecialTokens::kAreText)));
  }
  work.keep = options_.keep;
  if (work.keep) {
    work.keep = std::max(*work.keep, work.marked);
    if (!isChat && work.tokens.size() >= model.context && *work.keep < model.context)
      work.tokens = llm::shortenedText(work.tokens, model.context, *work.keep);
  }
  // One token of an answer has to fit, too.
  if (work.tokens.size() >= model.context) {
    ApiError error = refusalOf(
        400, "context_length_exceeded",
        base::formatText("The prompt has {} tokens; the context of the model has {}, and the "
                         "answer needs one at least.",
                         work.tokens.size(), model.context));
    error.param = isChat ? "messages" : "prompt";
    return std::unexpected(std::move(error));
  }
  if (work.tokens.empty())
    return refuse("prompt", "The prompt is empty: there is nothing to continue.");
  // Made here, where no answer waits for it.
  if (request.format != nullptr) static_cast<void>(model.model->tokenOrder());
  return work;
}

// The tokens of the messages and the tools, and how many of them mark a system message.
ApiResult<void> ChatService::makeChatTokens(AnswerWork* work) const {
  constexpr auto kAreText = llm::SpecialTokens::kAreText;
  AnswerRequest& request = work->request;
  const ServedModel& model = *work->model;
  if (model.prompt == nullptr)
    return refuse("model", "The model '{}' has no chat template; {} takes texts.", model.name,
                  kCompletions);
  llm::ChatPrompt prompt = *model.prompt;
  if (!request.tools.isNone() && request.toolChoice != ToolChoice::kNone) {
    if (prompt.toolFormat() == nullptr)
      return refuse("tools",
                    "How the model '{}' calls tools is not known: its chat template asks for none "
                    "of the forms that this server reads.",
                    model.name);
    HEARTH_ASSIGN(prompt, forMember("tools", prompt.withTools(request.tools)));
    work->calls = prompt.toolFormat();
  }
  if (options_.keep) {
    HEARTH_ASSIGN(llm::FittedPrompt fitted,
                  forMember("messages",
                            llm::fittedPrompt(prompt, request.messages, model.context, kAreText)));
    work->tokens = std::move(fitted.tokens);
  } else {
    HEARTH_ASSIGN(work->tokens,
                  forMember("messages", prompt.tokens(request.messages, true, kAreText)));
  }
  const std::vector<llm::ChatMessage> system = leadingSystem(request.messages);
  if (!system.empty() || work->calls != nullptr)
    work->marked = prompt.commonTokens(work->tokens, system, kAreText);
  if (request.toolChoice != ToolChoice::kRequired) return {};
  // The answer goes on behind what a call begins with.
  HEARTH_ASSIGN(
      const std::string schema,
      forMember("tools", llm::schemaOfCall(*work->calls, request.tools, request.requiredTool)));
  HEARTH_ASSIGN(llm::JsonSchema call, forMember("tools", llm::JsonSchema::parse(schema)));
  request.format = std::make_shared<const llm::JsonSchema>(std::move(call));
  HEARTH_ASSIGN(
      const std::vector<int32_t> opening,
      forMember("tools", model.model->tokenizer().encode(work->calls->opening,
                                                         llm::SpecialTokens::kAreParsed, false)));
  work->tokens.insert(work->tokens.end(), opening.begin(), opening.end());
  return {};
}

HttpReply ChatService::modelList() const {
  Json list = Json::array();
  for (const auto& model : options_.models) list.push_back(modelJson(*model));
  return {.body = Json{{"object", "list"}, {"data", std::move(list)}}.dump()};
}

ApiResult<HttpReply> ChatService::describeModel(const std::string& name) const {
  HEARTH_ASSIGN(const auto model, findModel(name));
  return HttpReply{.body = modelJson(*model).dump()};
}

HttpReply ChatService::health() const {
  if (isStopping_) return {.status = 503, .body = R"({"status":"ending"})"};
  return {.body = R"({"status":"ok"})"};
}

HttpReply ChatService::metricsText() const {
  const ConversationPool::Counts& pool = pool_.counts();
  const std::vector<Metrics::Figure> figures = {
      {"requests_running", "gauge", "Requests that are being answered.", scheduler_.running()},
      {"requests_waiting", "gauge", "Requests that wait for a session.", scheduler_.waiting()},
      {"connections", "gauge", "Open connections.",
       options_.connections ? options_.connections() : 0},
      {"sessions", "gauge", "Kept conversations.", pool.kept},
      {"sessions_busy", "gauge", "Kept conversations that are being continued.", pool.busy},
      {"sessions_continued_total", "counter", "Requests that continued a session.", pool.continued},
      {"sessions_forked_total", "counter", "Requests that began with a copy of a session.",
       pool.forked},
      {"sessions_created_total", "counter", "Requests that began with an empty session.",
       pool.created},
      {"sessions_evicted_total", "counter", "Sessions that gave way to others.", pool.evicted},
      {"private_memory_bytes", "gauge", "Private memory of the process.",
       base::readAnonymousRssKib() << 10}};
  return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_.toText(figures)};
}

}  // namespace hearth::llm_server
