// SPDX-License-Identifier: Apache-2.0
// The store of prefixes as a session uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "cache/object/store_failure.h"
#include "cache/prefix/prefix_store.h"
#include "llm/cache_layout.h"
#include "llm/prefill_plan.h"
#include "memory/mapping.h"

namespace hearth::llm {

// Tokens that are computed, kept and found together: those of one run that prefills, or of several
// runs of `decode` that follow each other.
struct PrefixPart {
  size_t begin = 0;
  size_t end = 0;
  cache::PrefixKey key;
  cache::PrefixKey predecessor;
};

// What is kept of the last token of a text that is a marked beginning as a whole. Lies in a block
// of the store.
struct StoredScores {
  memory::Mapping block;
  std::span<const float> scores;    // of each token as the next one
  std::span<const uint8_t> caches;  // the last token's keys and values, as of CacheLayout::save()
  size_t capacity = 0;              // for how many tokens the caches have room
  cache::PrefixKey predecessor;     // the last part of what stands before the last token
};

// What one model, as this build and this processor compute it, has in the store. Immutable;
// thread-safe.
class PrefixCache {
 public:
  // `model`: of ModelIdentity. `name`: the model's, for people.
  PrefixCache(std::shared_ptr<const cache::PrefixStore> store, const base::Sha256Digest& model,
              std::string name)
      : store_(std::move(store)), model_(model), name_(std::move(name)) {}

  // The parts of a text's beginning that is computed in these chunks. A key depends on the model,
  // the caches, all tokens up to the part's end and how they are divided: sums in another order
  // have other last bits, so a beginning that was divided otherwise is another one.
  std::vector<PrefixPart> parts(const CacheLayout& layout, std::span<const int32_t> tokens,
                                std::span<const Chunk> chunks) const;

  // Fills the caches with the first parts that are kept. Returns how many these are.
  size_t load(const CacheLayout& layout, std::span<const PrefixPart> parts) const;

  // Keeps parts that the caches hold. Errors: those of PrefixStore::write().
  cache::StoreStatus save(const CacheLayout& layout, std::span<const PrefixPart> parts) const;

  // What follows a text, whose last token was decoded behind the parts before it. Known without the
  // model, so the key says nothing of the caches and of how the text was divided: `predecessor`
  // does. Nothing where it is not kept.
  std::optional<StoredScores> scores(std::span<const int32_t> tokens) const;

  // Keeps it. `predecessor` is the last part before the last token, whose keys and values the
  // caches hold. Errors: those of PrefixStore::write().
  cache::StoreStatus saveScores(const CacheLayout& layout, std::span<const int32_t> tokens,
                                const cache::PrefixKey& predecessor,
                                std::span<const float> scores) const;

 private:
  cache::PrefixKey scoresKey(std::span<const int32_t> tokens) const;

  std::shared_ptr<const cache::PrefixStore> store_;
  base::Sha256Digest model_;
  std::string name_;
};

}  // namespace hearth::llm
