// SPDX-License-Identifier: Apache-2.0
#include "tools/language_session.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/immortal.h"
#include "base/process_memory.h"
#include "base/sha256.h"
#include "llm/chat_prompt.h"
#include "llm/json_constraint.h"
#include "llm/prefix_opening.h"
#include "llm/text_window.h"
#include "tools/text_argument.h"

namespace hearth::tools {
namespace {

// Never taken apart.
constinit base::Immortal<std::vector<std::unique_ptr<LanguageSession>>> openSessions;

hearth_cache_policy policyOf(const std::string& mode) {
  if (mode == "off") return HEARTH_CACHE_OFF;
  if (mode == "read-only") return HEARTH_CACHE_READ_ONLY;
  if (mode == "read-write") return HEARTH_CACHE_READ_WRITE;
  if (mode == "strict") return HEARTH_CACHE_STRICT;
  return HEARTH_CACHE_DEFAULT;
}

const char* endingName(llm::Ending ending) {
  switch (ending) {
    case llm::Ending::kStop:
      return "stop";
    case llm::Ending::kMaxTokens:
      return "max_tokens";
    case llm::Ending::kContext:
      return "context";
    case llm::Ending::kCancelled:
      return "cancelled";
  }
  return "stop";
}

// What of an answer is there, written to standard output as it comes where it is shown.
class ShownAnswer {
 public:
  ShownAnswer(LanguageSession::Answer* answer, bool isShown)
      : answer_(*answer), isShown_(isShown) {}

  void add(llm::ToolCallReader::Piece piece) {
    show(piece.text);
    answer_.text += piece.text;
    for (llm::ToolCall& call : piece.calls) {
      if (hasShown_) show("\n");
      show(base::formatText("{}({})", call.name, call.arguments));
      answer_.calls.push_back(std::move(call));
    }
  }

 private:
  void show(std::string_view text) {
    if (!isShown_ || text.empty()) return;
    std::cout << text << std::flush;
    hasShown_ = true;
  }

  LanguageSession::Answer& answer_;
  const bool isShown_;
  bool hasShown_ = false;
};

nlohmann::ordered_json toJson(const std::vector<llm::ToolCall>& calls) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const llm::ToolCall& call : calls) {
    auto arguments = nlohmann::ordered_json::parse(call.arguments, nullptr, false);
    // What the model has written as a text may be JSON in a looser sense.
    if (arguments.is_discarded()) arguments = call.arguments;
    list.push_back({{"name", call.name}, {"arguments", std::move(arguments)}});
  }
  return list;
}

}  // namespace

Outcome<LanguageSession*> LanguageSession::open(const LanguageOptions& options, Watchdog* watchdog,
                                                Readiness readiness) {
  std::unique_ptr<LanguageSession> session(new LanguageSession(options, watchdog));
  HEARTH_TRY(session->prepare());
  // The context, which is to be known for --keep, may be the compiled model's.
  if (readiness == Readiness::kAtOnce || options.keep) HEARTH_TRY(session->makeReady());
  return openSessions.get().emplace_back(std::move(session)).get();
}

double LanguageSession::elapsedMs() const {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin_)
      .count();
}

Outcome<void> LanguageSession::prepare() {
  watchdog_.beginStage("making the model ready");
  if (options_.jsonSchema) {
    HEARTH_ASSIGN(const std::string json, textOfArgument(options_.jsonSchema));
    HEARTH_ASSIGN(llm::JsonSchema schema, llm::JsonSchema::parse(json));
    schema_ = std::make_shared<const llm::JsonSchema>(std::move(schema));
  }
  compile_ = compileOptions(options_.store, options_.threads);
  HEARTH_ASSIGN(file_, llm::readModelFile(options_.model, options_.tokenizer,
                                          llm::TokenizerTables::of(compile_)));
  if (!file_.tokenizer)
    return usage("{} has no tokenizer; --tokenizer names a file with one.", options_.model);
  HEARTH_ASSIGN(startTokens_, llm::startTokens(file_.metadata, *file_.tokenizer));
  HEARTH_ASSIGN(generation_.stops, llm::StopRules::ofModel(file_.metadata, *file_.tokenizer));
  for (const std::string& stop : options_.stops) generation_.stops.texts.push_back(stop);
  generation_.maxTokens = options_.maxTokens;
  context_ = options_.context;
  if (context_ == 0) context_ = file_.metadata.maxTokens;
  if (options_.prefixStore != "off") {
    HEARTH_ASSIGN(identity_, llm::ModelIdentity::of(options_.model));
  }
  sampler_ = std::make_unique<llm::Sampler>(
      llm::samplerOptions(file_.metadata, {.temperature = options_.temperature,
                                           .topK = options_.topK,
                                           .topP = options_.topP,
                                           .minP = options_.minP,
                                           .repetitionPenalty = options_.repetitionPenalty,
                                           .presencePenalty = {},
                                           .frequencyPenalty = {},
                                           .seed = options_.seed}));
  watchdog_.beginStage("");
  return {};
}

Result<std::shared_ptr<const llm::CompiledModel>> LanguageSession::compile() {
  // Of a marked beginning that the store has, nothing is computed.
  const bool isMarked =
      options_.system || options_.prefix || options_.resume || options_.prefixStore == "all";
  const auto prefills = identity_ && isMarked ? llm::Prefills::kWhenNeeded : llm::Prefills::kAtOnce;
  watchdog_.beginStage("making the model ready");
  auto compiled = llm::CompiledModel::create(file_, compile_, prefills);
  watchdog_.beginStage("");
  return compiled;
}

Outcome<void> LanguageSession::makeReady() {
  HEARTH_ASSIGN(auto compiled, compile());
  HEARTH_ASSIGN(session_, llm::Session::create(std::move(compiled), context_));
  if (options_.keep && *options_.keep >= session_->context())
    return usage("--keep {} leaves no room in a context of {} tokens.", *options_.keep,
                 session_->context());
  readyMs_ = elapsedMs();
  return {};
}

Result<std::shared_ptr<const llm::CompiledModel>> LanguageSession::compileLater() {
  const double begin = elapsedMs();
  auto compiled = compile();
  // What was shown is an answer of the file that the scores were found by.
  if (compiled)
    if (Status same = identity_->check(); !same) compiled = std::unexpected(same.error());
  readyLaterMs_ += elapsedMs() - begin;
  if (!compiled)
    return std::unexpected(std::move(compiled.error())
                               .addContext("while making the model ready after the first token, "
                                           "which was stored"));
  return compiled;
}

bool LanguageSession::beginStored(const std::vector<int32_t>& prompt) {
  if (!identity_ || !llm::isForCpuAlone(compile_)) return false;
  auto opened = llm::openPrefixes(compile_, *identity_, options_.model);
  // Where that fails, mark() says why.
  if (!opened) return false;
  prefixes_ = *std::move(opened);
  auto stored = prefixes_->scores(prompt);
  if (!stored || (context_ != 0 && prompt.size() > context_)) return false;
  isStoreTried_ = true;
  session_ = llm::Session::createStored(prefixes_, *std::move(stored), prompt, context_,
                                        [this] { return compileLater(); });
  readyMs_ = elapsedMs();
  return true;
}

CompileOptions compileOptions(const StoreFlags& store, uint32_t threads) {
  CompileOptions options;
  options.threads = threads;
  options.store = store.path;
  options.cache = policyOf(store.mode);
  options.storeBytes = store.maxBytes;
  options.weightCache = store.weightCache;
  return options;
}

Status LanguageSession::openPrefixes() {
  if (prefixes_ == nullptr) {
    HEARTH_ASSIGN(prefixes_, llm::openPrefixes(compile_, *identity_, options_.model));
  } else {
    HEARTH_TRY(identity_->check());
  }
  return session_->usePrefixes(prefixes_);
}

// The store is only opened by who uses it. The answer is the same without it.
Status LanguageSession::mark(size_t count) {
  if (!identity_ || count == 0) return session_->markPrefix(count);
  if (!isStoreTried_) {
    isStoreTried_ = true;
    if (Status opened = openPrefixes(); !opened) prefixProblem_ = opened.error().message();
  }
  return session_->markPrefix(count);
}

// A constraint knows the text so far, so each answer has one of its own.
llm::GenerationOptions LanguageSession::generationOptions(size_t lasting) {
  llm::GenerationOptions options = generation_;
  if (options_.keep) options.keep = std::max(*options_.keep, lasting);
  if (schema_ == nullptr) return options;
  if (tokenOrder_ == nullptr) tokenOrder_ = std::make_shared<const llm::TokenOrder>(tokenizer());
  options.constraint = std::make_shared<llm::JsonConstraint>(schema_, tokenOrder_, tokenizer());
  return options;
}

Outcome<LanguageSession::Answer> LanguageSession::answer(const std::vector<int32_t>& given,
                                                         Beginning beginning, bool isShown,
                                                         const std::function<bool()>& isCancelled) {
  const llm::GenerationOptions options = generationOptions(beginning.lasting);
  std::vector<int32_t> prompt = given;
  if (options.keep && prompt.size() >= context() && *options.keep < context())
    prompt = llm::shortenedText(given, context(), *options.keep);
  Answer answer;
  answer.promptTokens = prompt.size();
  if (prompt.empty())
    return std::unexpected(
        Failure(kExitFailure, "The prompt is empty: there is nothing to continue."));
  const size_t marked =
      options_.prefixStore == "all" ? prompt.size() : std::min(beginning.marked, prompt.size());
  const bool isWhole = marked == prompt.size();
  if (session_ == nullptr && !(isWhole && beginStored(prompt))) HEARTH_TRY(makeReady());
  HEARTH_ASSIGN(answer.reusedTokens, session_->replace(prompt));
  HEARTH_TRY(mark(marked));
  const llm::Session::Counts before = session_->counts();
  ShownAnswer shown(&answer, isShown);
  std::optional<llm::ToolCallReader> reader;
  if (callFormat_ != nullptr) reader.emplace(*callFormat_, toolNames_, false);
  const auto take = [&](std::string_view text) {
    if (reader)
      shown.add(reader->add(text));
    else
      shown.add({.text = std::string(text), .calls = {}});
    return !isCancelled() && (!isShown || std::cout);
  };
  const double readyBefore = readyLaterMs_;
  auto generated = llm::generate(session_.get(), *file_.tokenizer, sampler_.get(), options, take);
  if (!generated && isShown && !answer.text.empty()) std::cout << '\n' << std::flush;
  HEARTH_ASSIGN(answer.result, std::move(generated));
  answer.readyLaterMs = readyLaterMs_ - readyBefore;
  answer.droppedTokens = given.size() - prompt.size() + answer.result.dropped;
  if (reader) shown.add(reader->finish());
  if (isShown) std::cout << '\n' << std::flush;
  if (const auto kept = session_->keepPrefix(); !kept) prefixProblem_ = kept.error().message;
  const llm::Session::Counts after = session_->counts();
  answer.storedTokens = after.stored - before.stored;
  if (after.prefillMs > before.prefillMs)
    answer.prefillTokensPerSecond = 1000 * static_cast<double>(after.prefilled - before.prefilled) /
                                    (after.prefillMs - before.prefillMs);
  if (answer.result.tokens > 1)
    answer.tokensPerSecond =
        1000 * static_cast<double>(answer.result.tokens - 1) /
        (answer.result.totalMs - answer.result.firstTokenMs - answer.readyLaterMs);
  if (answer.result.ending == llm::Ending::kContext)
    std::cerr << base::formatText(
        "hearth: The answer ends early: the context of {} tokens is full.\n", session_->context());
  if (answer.result.ending == llm::Ending::kMaxTokens && schema_ != nullptr)
    std::cerr << base::formatText(
        "hearth: The answer is no whole JSON: --max-tokens ends it after {}.\n",
        answer.result.tokens);
  return answer;
}

void LanguageSession::readCalls(const llm::ToolFormat& format, std::vector<std::string> names) {
  callFormat_ = &format;
  toolNames_ = std::move(names);
  for (const std::string_view mark : {format.begin, format.end})
    if (const auto token = tokenizer().specialToken(mark))
      generation_.shownTokens.push_back(*token);
}

Result<std::vector<int32_t>> LanguageSession::promptTokens(const std::string& text,
                                                           llm::SpecialTokens special) const {
  return llm::textTokens(startTokens_, tokenizer(), text, special);
}

const std::string& LanguageSession::modelContent() {
  if (modelContent_) return *modelContent_;
  modelContent_.emplace();
  if (!identity_) return *modelContent_;
  if (const auto store = llm::openPrefixStore(compile_))
    if (const auto digest = identity_->content(**store)) modelContent_ = base::toHex(*digest);
  return *modelContent_;
}

std::string LanguageSession::modelName() const {
  return std::filesystem::path(options_.model).filename();
}

Outcome<size_t> LanguageSession::keep(const std::vector<int32_t>& tokens) {
  // What is computed otherwise than the text that begins like this one is not what is kept.
  HEARTH_TRY(session_->rewind(0));
  HEARTH_TRY(session_->replace(tokens));
  HEARTH_TRY(mark(tokens.size()));
  if (prefixProblem_.empty()) {
    HEARTH_TRY(session_->computePrefix());
    if (const auto kept = session_->keepPrefix(); !kept) prefixProblem_ = kept.error().message;
  }
  if (!prefixProblem_.empty()) return std::unexpected(Failure(kExitFailure, prefixProblem_));
  return session_->counts().stored;
}

void LanguageSession::showStats(const Answer& answer) const {
  std::cerr << base::formatText(
      "ready after {:.2f} s; prompt of {} tokens, {} of them known, {} stored; first token after "
      "{:.2f} s; {} tokens, {:.1f} a second; memory {} MiB at most, {} MiB of it private\n",
      readyMs_ / 1000, answer.promptTokens, answer.reusedTokens, answer.storedTokens,
      answer.result.firstTokenMs / 1000, answer.result.tokens, answer.tokensPerSecond,
      base::readPeakRssKib() >> 10, base::readAnonymousRssKib() >> 10);
  if (answer.readyLaterMs > 0)
    std::cerr << base::formatText(
        "the first token was stored; the model was made ready after it, in {:.2f} s\n",
        answer.readyLaterMs / 1000);
  if (!prefixProblem_.empty())
    std::cerr << base::formatText("no stored prefix is used: {}\n", prefixProblem_);
}

nlohmann::ordered_json LanguageSession::toJson(const Answer& answer) const {
  const auto numberOrNull = [](double number) {
    return number > 0 ? nlohmann::ordered_json(number) : nlohmann::ordered_json(nullptr);
  };
  nlohmann::ordered_json json = {
      {"text", answer.text},
      {"ending", endingName(answer.result.ending)},
      {"prompt_tokens", answer.promptTokens},
      {"reused_tokens", answer.reusedTokens},
      {"stored_tokens", answer.storedTokens},
      {"tokens", answer.result.tokens},
      {"dropped_tokens", answer.droppedTokens},
      {"context", session_->context()},
      {"ready_ms", readyMs_},
      {"first_token_ms", answer.result.firstTokenMs},
      {"ready_later_ms", numberOrNull(answer.readyLaterMs)},
      {"prefill_tokens_per_second", numberOrNull(answer.prefillTokensPerSecond)},
      {"tokens_per_second", numberOrNull(answer.tokensPerSecond)},
      {"peak_rss_kib", base::readPeakRssKib()},
      {"anonymous_rss_kib", base::readAnonymousRssKib()}};
  if (callFormat_ != nullptr) json["tool_calls"] = hearth::tools::toJson(answer.calls);
  return json;
}

}  // namespace hearth::tools
