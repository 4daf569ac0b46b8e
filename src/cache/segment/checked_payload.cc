// SPDX-License-Identifier: Apache-2.0
#include "cache/segment/checked_payload.h"

#include "cache/object/boot_id.h"

namespace hearth::cache {
namespace {

// What is remembered of a file whose payload was right during this boot.
base::Sha256Digest rightInThisBoot(const SegmentInfo& info) {
  const BootId boot = currentBootId();
  base::Sha256 hash;
  hash.update(&boot, sizeof boot);
  hash.update(info.blocks.data(), info.blocks.size() * sizeof info.blocks[0]);
  return hash.finish();
}

}  // namespace

StoreResult<memory::Mapping> mapCheckedPayload(int fd, const SegmentInfo& info,
                                               ContentMemory* memory) {
  const ContentSource source = ContentSource::of(fd, 0, info.payloadSize);
  // What follows the payload is longer than what must be readable behind it.
  auto payload = memory::Mapping::insideFile(fd, 0, static_cast<size_t>(info.payloadSize));
  if (!payload) return storeFail(StoreReason::kIoError, "{}", payload.error().message());
  const base::Sha256Digest right = rightInThisBoot(info);
  if (recalledHash(source, memory) == right) return *std::move(payload);
  HEARTH_TRY(checkSegmentPayload({payload->data(), payload->size()}, info, 0, {}));
  if (memory != nullptr) rememberHash(source, right, *memory);
  return *std::move(payload);
}

}  // namespace hearth::cache
