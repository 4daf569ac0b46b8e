// SPDX-License-Identifier: Apache-2.0
#include "cache/plan/plan_file.h"

#include <cstring>

#include "cache/object/file_format.h"
#include "cache/object/object_file.h"

namespace hearth::cache {
namespace {

constexpr char kMagic[8] = {'H', 'R', 'T', 'H', 'P', 'L', 'N', '\n'};
constexpr uint32_t kVersion = 1;

struct Head {
  char magic[8];
  uint32_t version;
  uint32_t segmentCount;
  uint8_t key[32];
  uint8_t fingerprint[32];
  uint64_t byteCount;
  uint64_t fileSize;
  uint64_t descriptionSize;
  uint8_t reserved[24];
};
static_assert(sizeof(Head) == 128);
static_assert(sizeof(SegmentKey) == kDigestSize);

}  // namespace

StoreResult<PlanContent> parsePlanFile(std::span<const uint8_t> file) {
  if (file.size() < sizeof(Head) + kDigestSize)
    return storeFail(StoreReason::kCorrupt, "A plan file has {} bytes, fewer than its head.",
                     file.size());
  Head head;
  std::memcpy(&head, file.data(), sizeof head);
  const uint64_t room = file.size() - sizeof head - kDigestSize;
  const uint64_t keyBytes = uint64_t{head.segmentCount} * kDigestSize;
  if (std::memcmp(head.magic, kMagic, sizeof kMagic) != 0 || head.version != kVersion)
    return storeFail(StoreReason::kCorrupt, "A plan file has no head of version {}.", kVersion);
  // Each size is bounded by what the ones before it leave, so that no sum can wrap.
  if (head.fileSize != file.size() || keyBytes > room || head.descriptionSize > room - keyBytes ||
      head.byteCount != room - keyBytes - head.descriptionSize)
    return storeFail(StoreReason::kCorrupt,
                     "A plan file of {} bytes claims {} segments and {} bytes of content.",
                     file.size(), head.segmentCount, head.byteCount);
  const base::Sha256Digest digest = base::Sha256::of(file.first(file.size() - kDigestSize));
  if (std::memcmp(digest.data(), file.data() + file.size() - kDigestSize, kDigestSize) != 0)
    return storeFail(StoreReason::kCorrupt, "A plan file has changed.");
  PlanContent plan;
  std::memcpy(plan.key.bytes.data(), head.key, sizeof head.key);
  std::memcpy(plan.fingerprint.data(), head.fingerprint, sizeof head.fingerprint);
  plan.segments.resize(head.segmentCount);
  const auto keys = file.subspan(sizeof head, static_cast<size_t>(keyBytes));
  for (size_t i = 0; i < plan.segments.size(); ++i)
    std::memcpy(plan.segments[i].bytes.data(), keys.data() + i * kDigestSize, kDigestSize);
  const auto description =
      file.subspan(sizeof head + keys.size(), static_cast<size_t>(head.descriptionSize));
  HEARTH_ASSIGN(plan.description, PlanDescription::parse(description));
  const auto bytes = file.subspan(sizeof head + keys.size() + description.size(),
                                  static_cast<size_t>(head.byteCount));
  plan.bytes.assign(bytes.begin(), bytes.end());
  return plan;
}

StoreResult<std::vector<uint8_t>> makePlanFile(const PlanContent& plan) {
  const std::vector<uint8_t> description = plan.description.encoded();
  if (plan.segments.size() > kMaxPlanFile / kDigestSize || plan.bytes.size() > kMaxPlanFile ||
      sizeof(Head) + plan.segments.size() * kDigestSize + description.size() + plan.bytes.size() +
              kDigestSize >
          kMaxPlanFile)
    return storeFail(StoreReason::kBadRequest,
                     "A plan of {} segments and {} bytes exceeds the limit of {} bytes.",
                     plan.segments.size(), plan.bytes.size(), kMaxPlanFile);
  std::vector<uint8_t> file(sizeof(Head) + plan.segments.size() * kDigestSize + description.size() +
                            plan.bytes.size() + kDigestSize);
  Head head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.version = kVersion;
  head.segmentCount = static_cast<uint32_t>(plan.segments.size());
  std::memcpy(head.key, plan.key.bytes.data(), sizeof head.key);
  std::memcpy(head.fingerprint, plan.fingerprint.data(), sizeof head.fingerprint);
  head.byteCount = plan.bytes.size();
  head.fileSize = file.size();
  head.descriptionSize = description.size();
  uint8_t* position = file.data();
  const auto append = [&](const void* data, size_t size) {
    if (size != 0) std::memcpy(position, data, size);
    position += size;
  };
  append(&head, sizeof head);
  for (const SegmentKey& segment : plan.segments) append(segment.bytes.data(), kDigestSize);
  append(description.data(), description.size());
  append(plan.bytes.data(), plan.bytes.size());
  const base::Sha256Digest digest =
      base::Sha256::of(std::span(file).first(file.size() - kDigestSize));
  append(digest.data(), kDigestSize);
  return file;
}

StoreResult<PlanContent> readPlanFile(int fd, uint64_t fileSize, const PlanKey& key) {
  if (fileSize > kMaxPlanFile)
    return storeFail(StoreReason::kCorrupt, "The plan {} has {} bytes, more than {}.", key.hex(),
                     fileSize, kMaxPlanFile);
  std::vector<uint8_t> file(static_cast<size_t>(fileSize));
  HEARTH_TRY(readAt(fd, file.data(), file.size(), 0));
  HEARTH_ASSIGN(PlanContent plan, parsePlanFile(file));
  if (plan.key != key)
    return storeFail(StoreReason::kCorrupt, "The file of the plan {} holds the plan {}.", key.hex(),
                     plan.key.hex());
  return plan;
}

}  // namespace hearth::cache
