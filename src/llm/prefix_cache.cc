// SPDX-License-Identifier: Apache-2.0
#include "llm/prefix_cache.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/helper_thread.h"
#include "base/useful_threads.h"

namespace hearth::llm {
namespace {

// Changes with the form of the data, and with what the front gives a model besides tokens: masks,
// positions, embeddings and options of compilation. Its build is in no key.
constexpr std::string_view kPrefixKind = "hearth prefix 1";
// The same for scores, whose key does not tell how a text is divided: it changes with
// planPrefill(), too.
constexpr std::string_view kScoresKind = "hearth scores 1";
constexpr size_t kMostThreads = 4;

// What a block of scores begins with; the scores follow, and then the last token's part of the
// caches.
struct ScoresHead {
  uint64_t capacity;
  uint64_t count;
};

}  // namespace

std::vector<PrefixPart> PrefixCache::parts(const CacheLayout& layout,
                                           std::span<const int32_t> tokens,
                                           std::span<const Chunk> chunks) const {
  base::Sha256 hash;
  hash.update(kPrefixKind.data(), kPrefixKind.size());
  hash.update(model_);
  hash.update(layout.digest());
  cache::PrefixKey key{hash.finish()};
  std::vector<PrefixPart> parts;
  size_t begin = 0;
  for (size_t i = 0; i < chunks.size();) {
    const uint64_t length = chunks[i].length;
    size_t end = begin;
    do {
      end += chunks[i++].tokens;
    } while (length == 1 && i < chunks.size() && chunks[i].length == 1);
    hash.update(key.bytes);
    hash.update(&length, sizeof length);
    const auto range = tokens.subspan(begin, end - begin);
    hash.update(range.data(), range.size_bytes());
    const cache::PrefixKey predecessor = std::exchange(key, {hash.finish()});
    parts.push_back({begin, end, key, predecessor});
    begin = end;
  }
  return parts;
}

size_t PrefixCache::load(const CacheLayout& layout, std::span<const PrefixPart> parts) const {
  using Found = cache::StoreResult<cache::PrefixStore::Found>;
  std::vector<std::optional<Found>> found(parts.size());
  std::atomic<size_t> next = 0;
  std::atomic<bool> isOver = false;
  // Each block that has to be compared with its digests takes milliseconds.
  const auto find = [&] {
    for (size_t i = next++; i < parts.size() && !isOver; i = next++) {
      found[i] = store_->read(parts[i].key, layout.bytes(parts[i].begin, parts[i].end));
      if (!*found[i]) isOver = true;
    }
  };
  const size_t threads = std::min({base::usefulThreads(), kMostThreads, parts.size()});
  base::HelperThreads helpers("hearth-prefix", std::max(threads, size_t{1}) - 1, find);
  find();
  helpers.join();
  size_t loaded = 0;
  for (; loaded < parts.size() && found[loaded] && *found[loaded]; ++loaded) {
    const PrefixPart& part = parts[loaded];
    const auto& [file, block] = **found[loaded];
    const std::span bytes(block.data(), layout.bytes(part.begin, part.end));
    layout.load(part.begin, part.end, bytes, file.get());
  }
  return loaded;
}

cache::StoreStatus PrefixCache::save(const CacheLayout& layout,
                                     std::span<const PrefixPart> parts) const {
  for (const PrefixPart& part : parts) {
    std::vector<uint8_t> data(layout.bytes(part.begin, part.end));
    layout.save(part.begin, part.end, data);
    HEARTH_TRY(store_->write({.key = part.key,
                              .predecessor = part.predecessor,
                              .position = static_cast<uint32_t>(part.begin),
                              .tokens = static_cast<uint32_t>(part.end - part.begin),
                              .model = name_},
                             std::move(data)));
  }
  return {};
}

cache::PrefixKey PrefixCache::scoresKey(std::span<const int32_t> tokens) const {
  base::Sha256 hash;
  hash.update(kScoresKind.data(), kScoresKind.size());
  hash.update(kPrefixKind.data(), kPrefixKind.size());
  hash.update(model_);
  hash.update(tokens.data(), tokens.size_bytes());
  return {hash.finish()};
}

std::optional<StoredScores> PrefixCache::scores(std::span<const int32_t> tokens) const {
  auto found = store_->read(scoresKey(tokens));
  if (!found) return std::nullopt;
  const std::span<const uint8_t> block(found->block.data(), found->block.size());
  const auto described = cache::parsePrefixHead(block.last(cache::kPrefixHeadBytes));
  const auto data = block.first(block.size() - cache::kPrefixHeadBytes);
  ScoresHead head;
  if (!described || data.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, data.data(), sizeof head);
  const auto rest = data.subspan(sizeof head);
  if (head.count == 0 || head.count > rest.size() / sizeof(float) || head.capacity < tokens.size())
    return std::nullopt;
  StoredScores stored;
  stored.scores = {reinterpret_cast<const float*>(rest.data()), head.count};
  stored.caches = rest.subspan(stored.scores.size_bytes());
  stored.capacity = head.capacity;
  stored.predecessor = described->predecessor;
  stored.block = std::move(found->block);
  return stored;
}

cache::StoreStatus PrefixCache::saveScores(const CacheLayout& layout,
                                           std::span<const int32_t> tokens,
                                           const cache::PrefixKey& predecessor,
                                           std::span<const float> scores) const {
  const size_t last = tokens.size() - 1;
  const ScoresHead head{layout.capacity(), scores.size()};
  const size_t begin = sizeof head + scores.size_bytes();
  std::vector<uint8_t> data(begin + layout.bytes(last, last + 1));
  std::memcpy(data.data(), &head, sizeof head);
  std::memcpy(data.data() + sizeof head, scores.data(), scores.size_bytes());
  layout.save(last, last + 1, std::span(data).subspan(begin));
  return store_->write({.key = scoresKey(tokens),
                        .predecessor = predecessor,
                        .position = static_cast<uint32_t>(last),
                        .tokens = 1,
                        .model = name_},
                       std::move(data));
}

}  // namespace hearth::llm
