// SPDX-License-Identifier: Apache-2.0
// Segment tails and plan files of any content: what is taken lies within the file.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "cache/plan_file.h"
#include "cache/segment_file.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth::cache;
  if (size < 9) return 0;
  const std::span<const uint8_t> rest(data + 9, size - 9);
  if (data[0] % 2 == 0) {
    // The claimed file size is fuzzed too; the tail is at most what the caller would read.
    uint64_t fileSize = 0;
    for (int i = 1; i <= 8; ++i) fileSize = fileSize << 8 | data[i];
    if (fileSize < rest.size()) fileSize = rest.size();
    const auto tail =
        rest.last(static_cast<size_t>(std::min<uint64_t>(rest.size(), segmentTailSize(fileSize))));
    const auto info = parseSegmentTail(tail, fileSize);
    if (info) {
      require(info->payloadSize > 0 && info->payloadSize < fileSize);
      require(info->blocks.size() == (info->payloadSize + kSegmentBlock - 1) / kSegmentBlock);
    }
  } else {
    const auto plan = parsePlanFile(rest);
    if (plan) require(plan->bytes.size() + 32 * plan->segments.size() < rest.size());
  }
  return 0;
}
