// SPDX-License-Identifier: Apache-2.0
// Any bytes as head and index of a bundle: the first 112 bytes are the head's fields, all behind
// them is the index. Digests, which no mutation can guess, are put right first.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/sha256.h"
#include "cache/bundle_file.h"

namespace {

using namespace hearth;

constexpr size_t kFields = 112;
constexpr size_t kFileSizeAt = 16;
constexpr size_t kPlanSizeAt = 48;
constexpr size_t kIndexDigestAt = kFields - sizeof(base::Sha256Digest);

uint64_t wordAt(const uint8_t* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

void putDigest(std::span<const uint8_t> of, uint8_t* at) {
  const base::Sha256Digest digest = base::Sha256::of(of);
  std::memcpy(at, digest.data(), digest.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kFields) return 0;
  std::vector<uint8_t> head(data, data + kFields);
  // Of exactly this size, so that a sanitizer sees a read behind it.
  std::vector<uint8_t> index(data + kFields, data + size);
  const uint64_t planSize = wordAt(head.data() + kPlanSizeAt);
  if (planSize >= sizeof(base::Sha256Digest) && planSize <= index.size()) {
    uint8_t* const end = index.data() + index.size();
    uint8_t* const digest = end - sizeof(base::Sha256Digest);
    putDigest({end - planSize, digest}, digest);
  }
  putDigest(index, head.data() + kIndexDigestAt);
  head.resize(cache::kBundleHeadSize);
  uint8_t* const digest = head.data() + head.size() - sizeof(base::Sha256Digest);
  putDigest({head.data(), digest}, digest);

  const auto parsed = cache::parseBundleHead(head, wordAt(head.data() + kFileSizeAt));
  if (!parsed || parsed->indexSize() != index.size()) return 0;
  const auto content = cache::parseBundleIndex(index, *parsed);
  if (!content) return 0;
  for (const cache::SegmentInfo& info : content->segments)
    if (info.offset + info.payloadSize > parsed->indexOffset) std::abort();
  cache::BundleHead again;
  const uint64_t end = content->segments.empty()
                           ? cache::kBundleHeadSize
                           : content->segments.back().offset + content->segments.back().payloadSize;
  if (!cache::makeBundleIndex(*content, end, again)) std::abort();
  return 0;
}
