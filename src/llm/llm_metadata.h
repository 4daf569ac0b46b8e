// SPDX-License-Identifier: Apache-2.0
// What a `.litertlm` file says about its language model: the message LlmMetadata of LiteRT-LM.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace hearth::llm {

// Tokens as the metadata gives them: by their numbers or as text, one of which is empty.
struct TokenSequence {
  std::vector<int32_t> ids;
  std::string text;
};

// What stands before and behind a message of one role where the file has no template.
struct PromptAffixes {
  std::string prefix;
  std::string suffix;
};

struct SamplerParameters {
  enum class Type { kUnspecified, kTopK, kTopP, kGreedy };

  Type type = Type::kUnspecified;
  int32_t k = 0;
  float p = 0;
  float temperature = 0;
  int32_t seed = 0;
};

struct LlmMetadata {
  std::optional<TokenSequence> startToken;
  std::vector<TokenSequence> stopTokens;
  // Of the roles user, model and system; absent where the file has none.
  std::optional<PromptAffixes> user;
  std::optional<PromptAffixes> model;
  std::optional<PromptAffixes> system;
  std::optional<SamplerParameters> sampler;
  uint32_t maxTokens = 0;    // 0: the file does not say
  std::string chatTemplate;  // Jinja; empty: the file has none
  std::vector<int32_t> suppressedTokens;
};

// Fields that are not known are skipped. Text is UTF-8. Error: kBadData.
Result<LlmMetadata> readLlmMetadata(std::span<const uint8_t> message);

// The same of the member METADATA of a `.task` file: the message LlmParameters of MediaPipe
// (mediapipe/tasks/cc/genai/inference/proto/llm_params.proto).
Result<LlmMetadata> readTaskMetadata(std::span<const uint8_t> message);

}  // namespace hearth::llm
