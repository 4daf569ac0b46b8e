// SPDX-License-Identifier: Apache-2.0
#include "llm/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace hearth::llm {

SamplerOptions samplerOptions(const LlmMetadata& metadata, const SamplerChoice& choice) {
  using Type = SamplerParameters::Type;
  SamplerOptions options;
  if (const auto& own = metadata.sampler;
      own && (own->type == Type::kTopK || own->type == Type::kTopP)) {
    options.temperature = own->temperature > 0 ? own->temperature : 1;
    options.topK = own->k > 0 ? static_cast<uint32_t>(own->k) : 0;
    if (own->type == Type::kTopP && own->p > 0) options.topP = own->p;
    options.seed = static_cast<uint64_t>(own->seed);
  }
  if ((choice.topK || choice.topP || choice.minP) && !(options.temperature > 0))
    options.temperature = 1;
  options.temperature = choice.temperature.value_or(options.temperature);
  options.topK = choice.topK.value_or(options.topK);
  options.topP = choice.topP.value_or(options.topP);
  options.minP = choice.minP.value_or(options.minP);
  options.repetitionPenalty = choice.repetitionPenalty.value_or(1);
  options.presencePenalty = choice.presencePenalty.value_or(0);
  options.frequencyPenalty = choice.frequencyPenalty.value_or(0);
  options.seed = choice.seed.value_or(options.seed);
  options.suppressed = metadata.suppressedTokens;
  return options;
}

Sampler::Sampler(SamplerOptions options) : options_(std::move(options)), state_(options_.seed) {
  std::ranges::sort(options_.suppressed);
}

bool Sampler::isSuppressed(int32_t token) const {
  return std::ranges::binary_search(options_.suppressed, token);
}

// In [0, 1): the generator splitmix64.
double Sampler::uniform() {
  uint64_t number = state_ += 0x9E3779B97F4A7C15;
  number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9;
  number = (number ^ number >> 27) * 0x94D049BB133111EB;
  number ^= number >> 31;
  return static_cast<double>(number >> 11) * 0x1p-53;
}

int32_t Sampler::mostLikely(std::span<const float> logits) const {
  float best = -std::numeric_limits<float>::infinity();
  int32_t token = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    // False for what is no number.
    if (!(logits[i] > best) || isSuppressed(static_cast<int32_t>(i))) continue;
    best = logits[i];
    token = static_cast<int32_t>(i);
  }
  return token;
}

// The candidates that top-k leaves, the most likely first.
void Sampler::collect(std::span<const float> logits) {
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -std::numeric_limits<float>::infinity() &&
        !isSuppressed(static_cast<int32_t>(i)))
      candidates_.push_back({logits[i], static_cast<int32_t>(i)});
  const auto isBefore = [](const Candidate& left, const Candidate& right) {
    return left.score != right.score ? left.score > right.score : left.token < right.token;
  };
  if (options_.topK > 0 && options_.topK < candidates_.size()) {
    const auto end = candidates_.begin() + options_.topK;
    std::ranges::nth_element(candidates_, end, isBefore);
    candidates_.erase(end, candidates_.end());
  }
  std::ranges::sort(candidates_, isBefore);
}

std::span<const float> Sampler::penalized(std::span<const float> logits,
                                          std::span<const int32_t> text, size_t answered) {
  const bool hasRepetition = options_.repetitionPenalty != 1;
  const bool hasAnswer = options_.presencePenalty != 0 || options_.frequencyPenalty != 0;
  if (!hasRepetition && !hasAnswer) return logits;
  penalized_.assign(logits.begin(), logits.end());
  // Calls `change` with the score of each token that is there, and how often it is.
  const auto forEach = [&](std::span<const int32_t> tokens, const auto& change) {
    std::vector<int32_t> sorted(tokens.begin(), tokens.end());
    std::ranges::sort(sorted);
    for (auto first = sorted.begin(); first != sorted.end();) {
      const auto next = std::upper_bound(first, sorted.end(), *first);
      if (*first >= 0 && static_cast<size_t>(*first) < penalized_.size())
        change(&penalized_[static_cast<size_t>(*first)], static_cast<float>(next - first));
      first = next;
    }
  };
  if (hasRepetition)
    forEach(text, [&](float* score, float /*count*/) {
      *score =
          *score > 0 ? *score / options_.repetitionPenalty : *score * options_.repetitionPenalty;
    });
  if (hasAnswer)
    forEach(text.last(answered), [&](float* score, float count) {
      *score -= options_.presencePenalty + options_.frequencyPenalty * count;
    });
  return penalized_;
}

int32_t Sampler::next(std::span<const float> logits, std::span<const int32_t> text,
                      size_t answered) {
  logits = penalized(logits, text, answered);
  if (!(options_.temperature > 0) || options_.topK == 1) return mostLikely(logits);
  collect(logits);
  if (candidates_.empty()) return mostLikely(logits);
  // Probabilities relative to the first candidate's.
  const float best = candidates_[0].score;
  if (std::isinf(best)) return candidates_[0].token;
  double sum = 0;
  for (Candidate& candidate : candidates_) {
    candidate.score = std::exp((candidate.score - best) / options_.temperature);
    sum += candidate.score;
  }
  double kept = 0;
  size_t count = 0;
  while (count < candidates_.size() &&
         (count == 0 || (kept < options_.topP * sum && candidates_[count].score >= options_.minP)))
    kept += candidates_[count++].score;
  double drawn = uniform() * kept;
  for (size_t i = 0; i + 1 < count; ++i) {
    drawn -= candidates_[i].score;
    if (drawn < 0) return candidates_[i].token;
  }
  return candidates_[count - 1].token;
}

}  // namespace hearth::llm
