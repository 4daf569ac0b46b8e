// SPDX-License-Identifier: Apache-2.0
// Parses any bytes as a plan file and as the end of a segment file. Both contain a digest that no
// mutation can guess, so the bytes are parsed again with the right digest.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/sha256.h"
#include "cache/plan/plan_file.h"
#include "cache/segment/segment_file.h"

namespace {

using namespace hearth;

constexpr size_t kDigestSize = sizeof(base::Sha256Digest);
constexpr size_t kSegmentTrailerSize = 128;

void readPlan(const std::vector<uint8_t>& file) {
  const auto plan = cache::parsePlanFile(file);
  if (!plan) return;
  const auto again = cache::makePlanFile(*plan);
  if (!again || !cache::parsePlanFile(*again)) std::abort();
}

// `tail` as the last bytes of a file of `fileSize` bytes.
void readSegment(const std::vector<uint8_t>& tail, uint64_t fileSize) {
  const auto info = cache::parseSegmentTail(tail, fileSize);
  if (!info) return;
  if (info->payloadSize > fileSize) std::abort();
  // Writing the parsed fields again gives the same tail.
  const std::vector<uint8_t> again = cache::makeSegmentTail(*info);
  if (again.size() != fileSize - info->payloadSize || !cache::parseSegmentTail(again, fileSize))
    std::abort();
}

// Sets the last bytes to the digest of the `size` bytes before them.
void sign(std::vector<uint8_t>* bytes, size_t size) {
  const size_t end = bytes->size() - kDigestSize;
  const base::Sha256Digest digest = base::Sha256::of({bytes->data() + end - size, size});
  std::memcpy(bytes->data() + end, digest.data(), kDigestSize);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  readPlan(bytes);
  readSegment(bytes, size);
  if (size < kSegmentTrailerSize) return 0;
  sign(&bytes, size - kDigestSize);
  readPlan(bytes);
  // The digests of the blocks precede the trailer. Here the trailer belongs to a file that is
  // larger than the part that is read.
  const size_t trailer = size - kSegmentTrailerSize;
  uint64_t fileSize;
  std::memcpy(&fileSize, bytes.data() + trailer + 64, sizeof fileSize);
  uint64_t payloadSize;
  std::memcpy(&payloadSize, bytes.data() + trailer + 48, sizeof payloadSize);
  const uint64_t blocks =
      payloadSize / cache::kSegmentBlock + (payloadSize % cache::kSegmentBlock != 0 ? 1 : 0);
  if (blocks > trailer / kDigestSize) return 0;
  sign(&bytes, kSegmentTrailerSize - kDigestSize + blocks * kDigestSize);
  readSegment(bytes, fileSize);
  return 0;
}
