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
// For fewer bytes a thread costs more than it saves.
constexpr uint64_t kBytesPerThread = uint64_t{16} << 20;

struct Work {
  int fd;
  uint64_t offset;
  uint64_t size;
  std::vector<base::Sha256Digest> digests;
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::optional<StoreFailure> failure;  // the first one

  void run() {
    std::vector<uint8_t> buffer(static_cast<size_t>(std::min(kBlock, size)));
    for (;;) {
      const size_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= digests.size()) return;
      const uint64_t start = index * kBlock;
      const auto length = static_cast<size_t>(std::min(kBlock, size - start));
      if (StoreStatus read = readAt(fd, buffer.data(), length, offset + start); !read) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::move(read.error());
        next = digests.size();
        return;
      }
      digests[index] = base::Sha256::of(std::span(buffer).first(length));
    }
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
  work.digests.resize(static_cast<size_t>((size + kBlock - 1) / kBlock));
  if (threads == 0) threads = std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
  const auto useful = static_cast<unsigned>(std::min<uint64_t>(threads, size / kBytesPerThread));
  base::HelperThreads helpers("hearth-hash", std::max(useful, 1u) - 1, [&work] { work.run(); });
  work.run();
  helpers.join();
  if (work.failure) {
    const bool isShort = work.failure->reason == StoreReason::kCorrupt;
    return fail(isShort ? ErrorCode::kBadData : ErrorCode::kIo, "Hashing {} bytes at {} fails. {}",
                size, offset, work.failure->message);
  }
  return std::move(work.digests);
}

Result<base::Sha256Digest> hashContent(int fd, uint64_t offset, uint64_t size, unsigned threads,
                                       std::vector<base::Sha256Digest>* blocks) {
  HEARTH_ASSIGN(auto digests, blockDigests(fd, offset, size, threads));
  const base::Sha256Digest digest = digestOf(size, digests);
  if (blocks != nullptr) *blocks = std::move(digests);
  return digest;
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
