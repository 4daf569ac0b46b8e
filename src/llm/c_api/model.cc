// SPDX-License-Identifier: Apache-2.0
// The functions of hearth_llm.h about models, text and tokens.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

#include "llm/c_api/handles.h"
#include "llm/conversation.h"
#include "llm/model_description.h"
#include "llm/text_window.h"

using hearth::CompileOptions;
using hearth::ErrorCode;
using hearth::fail;
using hearth::Result;
using hearth::Status;
using namespace hearth::llm;         // NOLINT(google-build-using-namespace): this is its interface
using namespace hearth::llm::c_api;  // NOLINT(google-build-using-namespace)

namespace {

std::string stringOf(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

Result<CompileOptions> compileOptionsOf(const hearth_compile_options* given) {
  CompileOptions options;
  if (given == nullptr) return options;
  hearth_compile_options raw = HEARTH_COMPILE_OPTIONS_INIT;
  // Up to the first field that is not in all versions.
  constexpr size_t kLeast = offsetof(hearth_compile_options, shapes);
  HEARTH_TRY(readSized(*given, kLeast, "compile options", &raw));
  if (raw.signature != nullptr || raw.shape_count != 0)
    return fail(ErrorCode::kBadData,
                "The compile options name a signature or shapes, which the language model has.");
  options.device = stringOf(raw.device);
  options.preference = static_cast<hearth_preference>(raw.preference);
  options.priority = static_cast<hearth_priority>(raw.priority);
  options.threads = raw.threads;
  options.cache = static_cast<hearth_cache_policy>(raw.cache);
  options.maxActivationBytes = raw.max_activation_bytes;
  options.timeout = std::chrono::nanoseconds(raw.timeout_ns);
  options.longestStep = std::chrono::nanoseconds(static_cast<int64_t>(
      std::min<uint64_t>(raw.longest_step_ns, std::numeric_limits<int64_t>::max())));
  options.store = stringOf(raw.store);
  options.storeBytes = raw.store_bytes;
  options.weightCache = stringOf(raw.weight_cache);
  options.preparation = static_cast<hearth_preparation>(raw.preparation);
  options.tuning = static_cast<hearth_tuning>(raw.tuning);
  options.cacheDir = stringOf(raw.cache_dir);
  if (raw.cache_token != nullptr)
    std::copy_n(raw.cache_token, options.cacheToken.size(), options.cacheToken.begin());
  return options;
}

// The conversation of a caller, and what makes its prompt.
struct CallersPrompt {
  ChatPrompt prompt;
  std::vector<ChatMessage> messages;
};

Result<CallersPrompt> promptOf(const OpenModel& model, const char* json) {
  HEARTH_ASSIGN(const ChatPrompt* const prompt, model.chatPrompt());
  HEARTH_ASSIGN(Conversation conversation, Conversation::ofJson(json));
  if (conversation.tools.isNone()) return CallersPrompt{*prompt, std::move(conversation.messages)};
  HEARTH_ASSIGN(ChatPrompt withTools, prompt->withTools(std::move(conversation.tools)));
  return CallersPrompt{std::move(withTools), std::move(conversation.messages)};
}

}  // namespace

extern "C" {

hearth_status hearth_llm_open(const char* path, const hearth_llm_options* options,
                              hearth_llm_model** model, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (path == nullptr) return nullArgument("path");
    if (model == nullptr) return nullArgument("model");
    hearth_llm_options given = HEARTH_LLM_OPTIONS_INIT;
    if (options != nullptr) {
      HEARTH_TRY(readSized(*options, sizeof(given), "options", &given));
    }
    OpenModelOptions open;
    HEARTH_ASSIGN(open.compile, compileOptionsOf(given.compile));
    if (given.prefixes != HEARTH_LLM_PREFIXES_MARKED && given.prefixes != HEARTH_LLM_PREFIXES_OFF)
      return fail(ErrorCode::kBadData, "There is no way {} to keep prefixes.", given.prefixes);
    open.path = path;
    open.tokenizer = stringOf(given.tokenizer);
    open.chatTemplate = stringOf(given.chat_template);
    open.context = given.context;
    open.hasPrefixes = given.prefixes == HEARTH_LLM_PREFIXES_MARKED;
    HEARTH_ASSIGN(auto opened, OpenModel::create(std::move(open)));
    *model = new hearth_llm_model{std::move(opened)};
    return {};
  });
}

void hearth_llm_model_free(hearth_llm_model* model) {
  delete model;
}

hearth_status hearth_llm_model_describe(const hearth_llm_model* model, char** json,
                                        hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (model == nullptr) return nullArgument("model");
    if (json == nullptr) return nullArgument("json");
    HEARTH_ASSIGN(const std::string description,
                  describeLanguageModel(model->model->file(), model->model->ownTemplate()));
    *json = copyText(description);
    return {};
  });
}

hearth_status hearth_llm_tokenize(const hearth_llm_model* model, const char* text, size_t bytes,
                                  uint32_t flags, int32_t** tokens, size_t* count,
                                  hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (model == nullptr) return nullArgument("model");
    if (text == nullptr && bytes != 0) return nullArgument("text");
    if (tokens == nullptr) return nullArgument("tokens");
    if (count == nullptr) return nullArgument("count");
    HEARTH_TRY(checkFlags(flags, HEARTH_LLM_PARSE_SPECIAL));
    HEARTH_ASSIGN(const std::vector<int32_t> made,
                  model->model->tokenizer().encode(
                      std::string_view(text, bytes),
                      flags != 0 ? SpecialTokens::kAreParsed : SpecialTokens::kAreText));
    *tokens = copyTokens(made);
    *count = made.size();
    return {};
  });
}

void hearth_llm_tokens_free(int32_t* tokens) {
  std::free(tokens);
}

hearth_status hearth_llm_detokenize(const hearth_llm_model* model, const int32_t* tokens,
                                    size_t count, uint32_t flags, char** text, size_t* bytes,
                                    hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (model == nullptr) return nullArgument("model");
    if (tokens == nullptr && count != 0) return nullArgument("tokens");
    if (text == nullptr) return nullArgument("text");
    HEARTH_TRY(checkFlags(flags, HEARTH_LLM_SHOW_SPECIAL));
    const std::string made = model->model->tokenizer().decode(std::span(tokens, count), flags != 0);
    *text = copyText(made);
    if (bytes != nullptr) *bytes = made.size();
    return {};
  });
}

hearth_status hearth_llm_prompt_text(const hearth_llm_model* model, const char* messages,
                                     uint32_t flags, char** text, size_t* bytes,
                                     hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (model == nullptr) return nullArgument("model");
    if (messages == nullptr) return nullArgument("messages");
    if (text == nullptr) return nullArgument("text");
    HEARTH_TRY(checkFlags(flags, HEARTH_LLM_TO_ANSWER));
    HEARTH_ASSIGN(const CallersPrompt caller, promptOf(*model->model, messages));
    HEARTH_ASSIGN(const std::string made, caller.prompt.render(caller.messages, flags != 0));
    *text = copyText(made);
    if (bytes != nullptr) *bytes = made.size();
    return {};
  });
}

hearth_status hearth_llm_prompt_tokens(const hearth_llm_model* model, const char* messages,
                                       uint32_t flags, int32_t** tokens, size_t* count,
                                       hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (model == nullptr) return nullArgument("model");
    if (messages == nullptr) return nullArgument("messages");
    if (tokens == nullptr) return nullArgument("tokens");
    if (count == nullptr) return nullArgument("count");
    HEARTH_TRY(checkFlags(flags, HEARTH_LLM_TO_ANSWER | HEARTH_LLM_PARSE_SPECIAL));
    HEARTH_ASSIGN(const CallersPrompt caller, promptOf(*model->model, messages));
    const auto special = (flags & HEARTH_LLM_PARSE_SPECIAL) != 0 ? SpecialTokens::kAreParsed
                                                                 : SpecialTokens::kAreText;
    HEARTH_ASSIGN(
        const std::vector<int32_t> made,
        caller.prompt.tokens(caller.messages, (flags & HEARTH_LLM_TO_ANSWER) != 0, special));
    *tokens = copyTokens(made);
    *count = made.size();
    return {};
  });
}

hearth_status hearth_llm_prompt_fitting_tokens(const hearth_llm_model* model, const char* messages,
                                               size_t context, uint32_t flags, int32_t** tokens,
                                               size_t* count, size_t* dropped,
                                               hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (model == nullptr) return nullArgument("model");
    if (messages == nullptr) return nullArgument("messages");
    if (tokens == nullptr) return nullArgument("tokens");
    if (count == nullptr) return nullArgument("count");
    if (dropped == nullptr) return nullArgument("dropped");
    HEARTH_TRY(checkFlags(flags, HEARTH_LLM_PARSE_SPECIAL));
    HEARTH_ASSIGN(const CallersPrompt caller, promptOf(*model->model, messages));
    const auto special = flags != 0 ? SpecialTokens::kAreParsed : SpecialTokens::kAreText;
    HEARTH_ASSIGN(const FittedPrompt fitted,
                  fittedPrompt(caller.prompt, caller.messages, context, special));
    *tokens = copyTokens(fitted.tokens);
    *count = fitted.tokens.size();
    *dropped = fitted.dropped;
    return {};
  });
}

}  // extern "C"
