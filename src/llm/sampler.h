// SPDX-License-Identifier: Apache-2.0
// Chooses the next token by the model's scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "llm/llm_metadata.h"

namespace hearth::llm {

struct SamplerOptions {
  float temperature = 0;  // 0: always the most likely token
  uint32_t topK = 0;      // only the K most likely tokens; 0 = all
  float topP = 1;         // only the most likely ones that together have this probability
  float minP = 0;         // only those with this share of the most likely one's probability
  // How much less likely tokens are that are there already: of those anywhere in the text a score
  // above 0 is divided by this, and one below is multiplied; 1 = as likely.
  float repetitionPenalty = 1;
  // What is subtracted from the score of a token that the answer has, once and as often as it has
  // it; 0 = nothing.
  float presencePenalty = 0;
  float frequencyPenalty = 0;
  uint64_t seed = 0;
  std::vector<int32_t> suppressed;  // tokens that are never chosen
};

// What a user says about sampling.
struct SamplerChoice {
  std::optional<float> temperature;
  std::optional<uint32_t> topK;
  std::optional<float> topP;
  std::optional<float> minP;
  std::optional<float> repetitionPenalty;
  std::optional<float> presencePenalty;
  std::optional<float> frequencyPenalty;
  std::optional<uint64_t> seed;
};

// The model's own sampler, but for what the choice says. Where that limits the tokens and nothing
// says a temperature, it is 1.
SamplerOptions samplerOptions(const LlmMetadata& metadata, const SamplerChoice& choice);

// The same options and scores give the same tokens on every machine. Used by one thread at a time.
class Sampler {
 public:
  explicit Sampler(SamplerOptions options);

  // `logits`: a score for each token, at least one; those that are no number count as impossible.
  // Of tokens with equal scores the first is the most likely. `text`: all tokens so far; the last
  // `answered` of them are the answer's.
  int32_t next(std::span<const float> logits, std::span<const int32_t> text = {},
               size_t answered = 0);

 private:
  struct Candidate {
    float score;
    int32_t token;
  };

  bool isSuppressed(int32_t token) const;
  std::span<const float> penalized(std::span<const float> logits, std::span<const int32_t> text,
                                   size_t answered);
  int32_t mostLikely(std::span<const float> logits) const;
  void collect(std::span<const float> logits);
  double uniform();

  SamplerOptions options_;
  uint64_t state_;
  std::vector<Candidate> candidates_;
  std::vector<float> penalized_;
};

}  // namespace hearth::llm
