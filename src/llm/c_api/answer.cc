// SPDX-License-Identifier: Apache-2.0
// The functions of hearth_llm.h about answers.
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "llm/c_api/handles.h"
#include "llm/conversation.h"

using hearth::ErrorCode;
using hearth::fail;
using hearth::Result;
using hearth::Status;
using namespace hearth::llm;         // NOLINT(google-build-using-namespace): this is its interface
using namespace hearth::llm::c_api;  // NOLINT(google-build-using-namespace)

namespace {

Result<SamplerChoice> samplerChoice(const hearth_llm_answer_options& options) {
  if (std::isnan(options.temperature) || !(options.top_p >= 0 && options.top_p <= 1) ||
      !(options.min_p >= 0 && options.min_p <= 1))
    return fail(ErrorCode::kBadData,
                "The temperature is {}, top_p {} and min_p {}; the latter two are from 0 to 1.",
                options.temperature, options.top_p, options.min_p);
  const float repetition = options.repetition_penalty;
  if (!(repetition == 0 || (repetition >= 0.1F && repetition <= 10)) ||
      !std::isfinite(options.presence_penalty) || !std::isfinite(options.frequency_penalty))
    return fail(ErrorCode::kBadData,
                "The repetition penalty is {}, that of presence {}, of frequency {}; the first is "
                "from 0.1 to 10, the others are numbers.",
                repetition, options.presence_penalty, options.frequency_penalty);
  SamplerChoice choice;
  if (options.temperature >= 0) choice.temperature = options.temperature;
  if (options.top_k != 0) choice.topK = options.top_k;
  if (options.top_p != 0) choice.topP = options.top_p;
  if (options.min_p != 0) choice.minP = options.min_p;
  if (repetition != 0) choice.repetitionPenalty = repetition;
  choice.presencePenalty = options.presence_penalty;
  choice.frequencyPenalty = options.frequency_penalty;
  if (options.seed != 0) choice.seed = options.seed;
  return choice;
}

// The tools whose calls an answer is read for.
struct AnswerTools {
  const ToolFormat* format = nullptr;  // null = none
  std::vector<std::string> names;
  std::string schema;            // of the call that the answer is; empty = it need not be one
  std::vector<int32_t> opening;  // what stands before it
};

Result<AnswerTools> answerTools(const OpenModel& model, const hearth_llm_answer_options& options) {
  const std::string_view choice = options.tool_choice != nullptr ? options.tool_choice : "auto";
  AnswerTools tools;
  if (options.tools == nullptr) {
    if (choice != "auto")
      return fail(ErrorCode::kBadData, "The choice of a tool is '{}', and there are no tools.",
                  choice);
    return tools;
  }
  HEARTH_ASSIGN(const TemplateValue list, toolsOfJson(options.tools));
  HEARTH_ASSIGN(tools.names, toolNames(list));
  HEARTH_ASSIGN(const ChatPrompt* const prompt, model.chatPrompt());
  tools.format = prompt->toolFormat();
  if (tools.format == nullptr)
    return fail(ErrorCode::kUnsupported,
                "How the model calls tools is not known: its chat template asks for none of the "
                "forms that can be read.");
  if (choice == "auto") return tools;
  if (options.json_schema != nullptr)
    return fail(ErrorCode::kBadData, "The answer is to be a call, and JSON of a schema.");
  HEARTH_ASSIGN(tools.schema,
                schemaOfCall(*tools.format, list, choice == "required" ? "" : choice));
  HEARTH_ASSIGN(tools.opening,
                model.tokenizer().encode(tools.format->opening, SpecialTokens::kAreParsed, false));
  return tools;
}

Result<GenerationOptions> generationOptions(const OpenModel& model,
                                            const hearth_llm_answer_options& options,
                                            const AnswerTools& tools) {
  GenerationOptions generation;
  HEARTH_ASSIGN(generation.stops, StopRules::ofModel(model.metadata(), model.tokenizer()));
  if (options.stops == nullptr && options.stop_count != 0) return nullArgument("stops");
  for (size_t i = 0; i < options.stop_count; ++i) {
    if (options.stops[i] == nullptr) return nullArgument("stops");
    generation.stops.texts.emplace_back(options.stops[i]);
  }
  generation.maxTokens = options.max_tokens;
  if (options.when_full == HEARTH_LLM_DROP_OLDEST)
    generation.keep = options.keep;
  else if (options.when_full != HEARTH_LLM_END_ANSWER)
    return fail(ErrorCode::kBadData, "Nothing is known that happens with a full context as {}.",
                options.when_full);
  if (tools.format != nullptr)
    for (const std::string_view mark : {tools.format->begin, tools.format->end})
      if (const auto token = model.tokenizer().specialToken(mark))
        generation.shownTokens.push_back(*token);
  const char* const json = tools.schema.empty() ? options.json_schema : tools.schema.c_str();
  if (json != nullptr) {
    HEARTH_ASSIGN(JsonSchema schema, JsonSchema::parse(json));
    generation.constraint =
        std::make_shared<JsonConstraint>(std::make_shared<const JsonSchema>(std::move(schema)),
                                         model.tokenOrder(), model.tokenizer());
  }
  return generation;
}

int32_t endingOf(const Generation& generation) {
  if (!generation.isEnded()) return HEARTH_LLM_RUNNING;
  switch (generation.result().ending) {
    case Ending::kStop:
      return HEARTH_LLM_STOP;
    case Ending::kMaxTokens:
      return HEARTH_LLM_MAX_TOKENS;
    case Ending::kContext:
      return HEARTH_LLM_CONTEXT;
    case Ending::kCancelled:
      return HEARTH_LLM_CANCELLED;
  }
  return HEARTH_LLM_STOP;
}

}  // namespace

extern "C" {

hearth_status hearth_llm_answer_begin(hearth_llm_session* session,
                                      const hearth_llm_answer_options* options,
                                      hearth_llm_answer** answer, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return nullArgument("session");
    if (answer == nullptr) return nullArgument("answer");
    hearth_llm_answer_options given = HEARTH_LLM_ANSWER_OPTIONS_INIT;
    if (options != nullptr) {
      // Up to the first field that is not in all versions.
      constexpr size_t kLeast = offsetof(hearth_llm_answer_options, tools);
      HEARTH_TRY(readSized(*options, kLeast, "options", &given));
    }
    const std::shared_ptr<OpenSession>& open = session->open;
    if (open->answer != nullptr)
      return fail(ErrorCode::kBadState, "The session is generating another answer.");
    if (open->session->tokens().empty())
      return fail(ErrorCode::kBadState, "The text is empty: there is nothing to continue.");
    if (given.when_full == HEARTH_LLM_DROP_OLDEST && given.keep >= open->session->context())
      return fail(ErrorCode::kBadData, "{} tokens that are kept leave no room in a context of {}.",
                  given.keep, open->session->context());
    HEARTH_ASSIGN(const SamplerChoice choice, samplerChoice(given));
    HEARTH_ASSIGN(AnswerTools tools, answerTools(*open->model, given));
    HEARTH_ASSIGN(GenerationOptions generation, generationOptions(*open->model, given, tools));
    const auto made = std::make_shared<OpenAnswer>(
        open, Sampler(samplerOptions(open->model->metadata(), choice)));
    made->generation.emplace(open->session.get(), open->model->tokenizer(), &made->sampler,
                             std::move(generation));
    if (tools.format != nullptr)
      made->callReader.emplace(*tools.format, std::move(tools.names), !tools.schema.empty());
    auto handle = std::make_unique<hearth_llm_answer>(made);
    HEARTH_TRY(open->session->append(tools.opening));
    open->answer = made.get();
    *answer = handle.release();
    return {};
  });
}

void hearth_llm_answer_free(hearth_llm_answer* answer) {
  if (answer == nullptr) return;
  answer->open->close();
  delete answer;
}

hearth_status hearth_llm_answer_next(hearth_llm_answer* answer, uint64_t timeout_ns,
                                     const char** text, size_t* bytes, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (answer == nullptr) return nullArgument("answer");
    if (text == nullptr) return nullArgument("text");
    if (bytes == nullptr) return nullArgument("bytes");
    OpenAnswer& open = *answer->open;
    StepLimits limits = limitsOf(timeout_ns);
    limits.isCancelled = &open.isCancelled;
    HEARTH_ASSIGN(auto piece, open.generation->next(limits));
    if (open.generation->isEnded()) open.close();
    *text = nullptr;
    *bytes = 0;
    if (!piece) return {};
    open.text = open.textOf(*piece);
    *text = open.text.c_str();
    *bytes = open.text.size();
    return {};
  });
}

hearth_status hearth_llm_answer_scores(hearth_llm_answer* answer, uint64_t timeout_ns,
                                       float** scores, size_t* count, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (answer == nullptr) return nullArgument("answer");
    if (scores == nullptr) return nullArgument("scores");
    if (count == nullptr) return nullArgument("count");
    OpenAnswer& open = *answer->open;
    StepLimits limits = limitsOf(timeout_ns);
    limits.isCancelled = &open.isCancelled;
    HEARTH_ASSIGN(const auto computed, open.generation->scores(limits));
    *scores = computed.data();
    *count = computed.size();
    return {};
  });
}

const int32_t* hearth_llm_answer_tokens(const hearth_llm_answer* answer, size_t* count) {
  const std::span<const int32_t> tokens =
      answer != nullptr ? answer->open->generation->tokens() : std::span<const int32_t>();
  if (count != nullptr) *count = tokens.size();
  return tokens.data();
}

size_t hearth_llm_answer_tool_call_count(const hearth_llm_answer* answer) {
  return answer != nullptr ? answer->open->calls.size() : 0;
}

hearth_status hearth_llm_answer_tool_call(const hearth_llm_answer* answer, size_t index,
                                          hearth_llm_tool_call* call, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (answer == nullptr) return nullArgument("answer");
    const std::deque<ToolCall>& calls = answer->open->calls;
    if (index >= calls.size())
      return fail(ErrorCode::kBadData, "There is no call {} of a tool; the answer has {}.", index,
                  calls.size());
    return fillSized(call,
                     hearth_llm_tool_call{sizeof(hearth_llm_tool_call), calls[index].name.c_str(),
                                          calls[index].arguments.c_str()});
  });
}

void hearth_llm_answer_cancel(hearth_llm_answer* answer) {
  if (answer != nullptr) answer->open->isCancelled = true;
}

hearth_status hearth_llm_answer_describe(const hearth_llm_answer* answer,
                                         hearth_llm_answer_report* report, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (answer == nullptr) return nullArgument("answer");
    const Generation& generation = *answer->open->generation;
    const GenerationResult& result = generation.result();
    return fillSized(
        report, hearth_llm_answer_report{sizeof(hearth_llm_answer_report), endingOf(generation), 0,
                                         result.tokens, result.firstTokenMs, result.totalMs});
  });
}

}  // extern "C"
