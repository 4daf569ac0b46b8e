// SPDX-License-Identifier: Apache-2.0
// Chooses the next token by the model's scores.
#pragma once

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
  uint64_t seed = 0;
  std::vector<int32_t> suppressed;  // tokens that are never chosen
};

// What a user says about sampling.
struct SamplerChoice {
  std::optional<float> temperature;
  std::optional<uint32_t> topK;
  std::optional<float> topP;
  std::optional<float> minP;
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
  // Of tokens with equal scores the first is the most likely.
  int32_t next(std::span<const float> logits);

 private:
  struct Candidate {
    float score;
    int32_t token;
  };

  bool isSuppressed(int32_t token) const;
  int32_t mostLikely(std::span<const float> logits) const;
  void collect(std::span<const float> logits);
  double uniform();

  SamplerOptions options_;
  uint64_t state_;
  std::vector<Candidate> candidates_;
};

}  // namespace hearth::llm
