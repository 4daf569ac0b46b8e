// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "cache/identity/content_tags.h"
#include "cache/object/store_key.h"

namespace hearth::cache {

// The bytes that have a digest of their own.
inline constexpr uint64_t kHashBlock = uint64_t{1} << 20;

// Digests `size` bytes of a file from `offset` on: SHA-256 over the size and the SHA-256 of each
// MiB, so that several threads can share the work. This is not the plain SHA-256 of the bytes.
// Reads without mapping, so that nothing becomes resident in this process. `threads` is an upper
// limit; 0 = one for each CPU, up to 8. With a key, `tags` gets the tags of the very bytes that
// were digested. `gaps` do not count. Errors: kBadData when the file is shorter, kIo.
Result<base::Sha256Digest> hashContent(
    int fd, uint64_t offset, uint64_t size, unsigned threads,
    const std::optional<base::UniversalHash::Key>& key = std::nullopt, ContentTags* tags = nullptr,
    std::span<const ContentGap> gaps = {});

// The tags of the same bytes, for a fraction of the time. `threads` and errors as hashContent.
Result<ContentTags> tagContent(int fd, uint64_t offset, uint64_t size, unsigned threads,
                               const base::UniversalHash::Key& key,
                               std::span<const ContentGap> gaps = {});

// How many bytes these functions read of a content.
uint64_t countedBytes(uint64_t size, std::span<const ContentGap> gaps);

// The same digest of bytes in memory, on the calling thread.
base::Sha256Digest hashContent(std::span<const uint8_t> bytes);

// The key of a segment, which names its content: equal packings are one segment, whoever made them.
SegmentKey contentSegmentKey(std::span<const uint8_t> payload);

// The SHA-256 of each MiB. The key is made from these digests and the segment file holds them, so a
// caller computes them once for both.
std::vector<base::Sha256Digest> blockDigests(std::span<const uint8_t> payload);
// The same for a payload in a file; `threads` and errors as hashContent.
Result<std::vector<base::Sha256Digest>> blockDigests(int fd, uint64_t offset, uint64_t size,
                                                     unsigned threads);
SegmentKey contentSegmentKey(size_t size, std::span<const base::Sha256Digest> blocks);

}  // namespace hearth::cache
