// SPDX-License-Identifier: Apache-2.0
#include "cache/identity/content_hash.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/helper_thread.h"
#include "cache/object/object_file.h"

namespace hearth::cache {
namespace {

constexpr uint64_t kBlock = kHashBlock;
static_assert(kBlock % kTagBlock == 0);
// Tags are made of as many bytes at once as stay in the processor's cache until then.
constexpr uint64_t kTagRead = 4 * kTagBlock;
// For fewer bytes a thread costs more than it saves.
constexpr uint64_t kBytesPerThread = uint64_t{16} << 20;
constexpr uint64_t kTaggedBytesPerThread = uint64_t{4} << 20;

size_t blocksIn(uint64_t size, uint64_t block) {
  return static_cast<size_t>((size + block - 1) / block);
}

bool isInside(const ContentGap& gap, uint64_t size) {
  return gap.offset <= size && gap.size <= size - gap.offset;
}

// Which blocks lie in a gap; empty: none.
std::vector<bool> gapBlocks(uint64_t size, std::span<const ContentGap> gaps) {
  std::vector<bool> isGap;
  for (const ContentGap& gap : gaps) {
    if (!isInside(gap, size)) continue;
    isGap.resize(blocksIn(size, kBlock));
    const uint64_t end = (gap.offset + gap.size) / kBlock;
    for (uint64_t block = blocksIn(gap.offset, kBlock); block < end; ++block) isGap[block] = true;
  }
  return isGap;
}

// Threads that read a range of a file and make digests, tags, or both, of the same bytes.
struct Work {
  int fd;
  uint64_t offset;
  uint64_t size;
  std::vector<base::Sha256Digest> digests;         // empty: not wanted
  std::optional<base::UniversalHash> tagger = {};  // none: no tags are wanted
  std::vector<base::UniversalHash::Tag> tags;
  std::span<const ContentGap> gaps = {};
  std::vector<bool> isGap = {};  // gapBlocks()
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::optional<StoreFailure> failure;  // the first one

  void run() {
    const uint64_t part = digests.empty() ? kTagRead : kBlock;
    std::vector<uint8_t> buffer(static_cast<size_t>(std::min(part, size)));
    for (const size_t parts = blocksIn(size, part);;) {
      const size_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= parts) return;
      const uint64_t start = index * part;
      if (!isGap.empty() && isGap[start / kBlock]) continue;
      const auto length = static_cast<size_t>(std::min(part, size - start));
      if (StoreStatus read = readAt(fd, buffer.data(), length, offset + start); !read) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::move(read.error());
        next = parts;
        return;
      }
      const auto bytes = std::span(buffer).first(length);
      clearGaps(start, bytes);
      if (!digests.empty()) digests[index] = base::Sha256::of(bytes);
      if (!tagger) continue;
      for (size_t at = 0; at < length; at += kTagBlock)
        tags[(start + at) / kTagBlock] =
            tagger->of(bytes.subspan(at, std::min<size_t>(kTagBlock, length - at)));
    }
  }

  // Clears what lies in gaps of bytes that were read from `start` on.
  void clearGaps(uint64_t start, std::span<uint8_t> bytes) const {
    for (const ContentGap& gap : gaps) {
      if (!isInside(gap, size)) continue;
      const uint64_t begin = std::max(gap.offset, start);
      const uint64_t end = std::min(gap.offset + gap.size, start + bytes.size());
      if (begin < end) std::ranges::fill(bytes.subspan(begin - start, end - begin), uint8_t{0});
    }
  }

  Status runOn(unsigned threads) {
    isGap = gapBlocks(size, gaps);
    if (tagger) tags.resize(blocksIn(size, kTagBlock));
    if (threads == 0) threads = std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
    const uint64_t share = digests.empty() ? kTaggedBytesPerThread : kBytesPerThread;
    const auto useful = static_cast<unsigned>(std::min<uint64_t>(threads, size / share));
    base::HelperThreads helpers("hearth-hash", std::max(useful, 1u) - 1, [this] { run(); });
    run();
    helpers.join();
    if (!failure) return {};
    const bool isShort = failure->reason == StoreReason::kCorrupt;
    return fail(isShort ? ErrorCode::kBadData : ErrorCode::kIo, "Hashing {} bytes at {} fails. {}",
                size, offset, failure->message);
  }
};

base::Sha256Digest digestOf(uint64_t size, std::span<const base::Sha256Digest> blocks) {
  base::Sha256 hash;
  hash.update(&size, sizeof size);
  hash.update(blocks.data(), blocks.size_bytes());
  return hash.finish();
}

}  // namespace

Result<std::vector<base::Sha256Digest>> blockDigests(int fd, uint64_t offset, uint64_t size,
                                                     unsigned threads) {
  Work work{.fd = fd, .offset = offset, .size = size};
  work.digests.resize(blocksIn(size, kBlock));
  HEARTH_TRY(work.runOn(threads));
  return std::move(work.digests);
}

Result<base::Sha256Digest> hashContent(int fd, uint64_t offset, uint64_t size, unsigned threads,
                                       const std::optional<base::UniversalHash::Key>& key,
                                       ContentTags* tags, std::span<const ContentGap> gaps) {
  Work work{.fd = fd, .offset = offset, .size = size};
  work.digests.resize(blocksIn(size, kBlock));
  work.gaps = gaps;
  if (key && tags != nullptr) work.tagger.emplace(*key);
  HEARTH_TRY(work.runOn(threads));
  if (work.tagger) *tags = {size, std::move(work.tags)};
  return digestOf(size, work.digests);
}

Result<ContentTags> tagContent(int fd, uint64_t offset, uint64_t size, unsigned threads,
                               const base::UniversalHash::Key& key,
                               std::span<const ContentGap> gaps) {
  Work work{.fd = fd, .offset = offset, .size = size};
  work.gaps = gaps;
  work.tagger.emplace(key);
  HEARTH_TRY(work.runOn(threads));
  return ContentTags{size, std::move(work.tags)};
}

uint64_t countedBytes(uint64_t size, std::span<const ContentGap> gaps) {
  const std::vector<bool> isGap = gapBlocks(size, gaps);
  return size - kBlock * static_cast<uint64_t>(std::ranges::count(isGap, true));
}

std::vector<base::Sha256Digest> blockDigests(std::span<const uint8_t> payload) {
  std::vector<base::Sha256Digest> digests;
  digests.reserve(payload.size() / kBlock + 1);
  for (size_t offset = 0; offset < payload.size(); offset += kBlock)
    digests.push_back(base::Sha256::of(
        payload.subspan(offset, std::min<size_t>(kBlock, payload.size() - offset))));
  return digests;
}

base::Sha256Digest hashContent(std::span<const uint8_t> bytes) {
  return digestOf(bytes.size(), blockDigests(bytes));
}

SegmentKey contentSegmentKey(std::span<const uint8_t> payload) {
  return {hashContent(payload)};
}

SegmentKey contentSegmentKey(size_t size, std::span<const base::Sha256Digest> blocks) {
  return {digestOf(size, blocks)};
}

}  // namespace hearth::cache
