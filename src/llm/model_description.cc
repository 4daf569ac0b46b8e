// SPDX-License-Identifier: Apache-2.0
#include "llm/model_description.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "llm/chat_prompt.h"
#include "llm/sampler.h"
#include "llm/stop_rules.h"

namespace hearth::llm {
namespace {

using Json = nlohmann::ordered_json;

Json textOrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json samplerOf(const LlmMetadata& metadata) {
  const SamplerOptions sampler = samplerOptions(metadata, {});
  if (!(sampler.temperature > 0)) return nullptr;
  return {{"temperature", sampler.temperature},
          {"top_k", sampler.topK},
          {"top_p", sampler.topP},
          {"seed", sampler.seed}};
}

Json affixesOf(const LlmMetadata& metadata) {
  if (!metadata.user && !metadata.model && !metadata.system) return nullptr;
  Json all = Json::object();
  const auto add = [&](const char* role, const std::optional<PromptAffixes>& affixes) {
    if (affixes) all[role] = {{"prefix", affixes->prefix}, {"suffix", affixes->suffix}};
  };
  add("system", metadata.system);
  add("user", metadata.user);
  add("model", metadata.model);
  return all;
}

Json cachesOf(const ExecutorMetadata& executor) {
  Json all = Json::array();
  for (const StateBuffer& buffer : executor.stateBuffers)
    all.push_back({{"name", buffer.decodeInput},
                   {"type", stateBufferTypeName(buffer.type)},
                   {"sequence_axis", buffer.sequenceAxis ? Json(*buffer.sequenceAxis) : nullptr}});
  return all;
}

}  // namespace

Result<std::string> describeLanguageModel(const ModelFile& file, std::string_view chatTemplate) {
  const LlmMetadata& metadata = file.metadata;
  Json description = {{"tokenizer", nullptr}, {"vocabulary", nullptr}};
  description["context"] = metadata.maxTokens == 0 ? Json(nullptr) : Json(metadata.maxTokens);
  description["start_tokens"] = nullptr;
  description["stop_sequences"] = nullptr;
  description["stop_texts"] = nullptr;
  if (file.tokenizer) {
    HEARTH_ASSIGN(const StopRules stops, StopRules::ofModel(metadata, *file.tokenizer));
    HEARTH_ASSIGN(const std::vector<int32_t> start, startTokens(metadata, *file.tokenizer));
    description["tokenizer"] = file.tokenizer->kind();
    description["vocabulary"] = file.tokenizer->size();
    description["start_tokens"] = start;
    description["stop_sequences"] = stops.sequences;
    description["stop_texts"] = stops.texts;
  }
  description["chat_template"] = textOrNull(metadata.chatTemplate);
  if (chatTemplate.empty()) chatTemplate = metadata.chatTemplate;
  const ToolFormat* const calls = toolFormatOf(chatTemplate);
  description["tool_calls"] = calls != nullptr ? Json(calls->name) : Json(nullptr);
  description["prompt_affixes"] = affixesOf(metadata);
  description["sampler"] = samplerOf(metadata);
  description["suppressed_tokens"] = metadata.suppressedTokens;
  description["caches"] = cachesOf(file.executor);
  // A template of strange bytes is shown as well as it can be.
  return description.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace hearth::llm
