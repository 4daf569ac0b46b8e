// SPDX-License-Identifier: Apache-2.0
// Parses any bytes as head and index of a bundle: the first 120 bytes are the fields of the head,
// the rest is the index. The digests, which no mutation can guess, are corrected first.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/sha256.h"
#include "cache/bundle/bundle_file.h"

namespace {

using namespace hearth;

constexpr size_t kFields = 120;
constexpr size_t kFileSizeAt = 16;
constexpr size_t kPlanSizeAt = 48;
constexpr size_t kFactsSizeAt = 64;
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

// Corrects the digests of the plan and of the facts after it, if these lie within `index`.
void signParts(std::span<uint8_t> index, uint64_t planSize, uint64_t factsSize) {
  constexpr size_t kDigest = sizeof(base::Sha256Digest);
  if (factsSize > index.size()) return;
  if (factsSize >= 2 * kDigest) {
    const auto facts = index.last(factsSize);
    base::Sha256 hash;
    hash.update(facts.first(kDigest));
    hash.update(facts.subspan(2 * kDigest));
    const base::Sha256Digest digest = hash.finish();
    std::memcpy(facts.data() + kDigest, digest.data(), kDigest);
  }
  index = index.first(index.size() - factsSize);
  if (planSize < kDigest || planSize > index.size()) return;
  const auto plan = index.last(planSize);
  putDigest(plan.first(plan.size() - kDigest), plan.data() + plan.size() - kDigest);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kFields) return 0;
  std::vector<uint8_t> head(data, data + kFields);
  // Allocated with exactly this size, so that a sanitizer detects reads past its end.
  std::vector<uint8_t> index(data + kFields, data + size);
  signParts(index, wordAt(head.data() + kPlanSizeAt), wordAt(head.data() + kFactsSizeAt));
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
