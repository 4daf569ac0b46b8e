// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/compilation_cache/cached_model.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "drivers/cpu/plan/plan.h"
#include "drivers/cpu/weights/stored_head.h"

namespace hearth::cpu {
namespace {

constexpr char kDataMagic[8] = {'H', 'C', 'P', 'U', 'D', 'A', 'T', 'A'};
constexpr char kModelMagic[8] = {'H', 'C', 'P', 'U', 'M', 'O', 'D', 'L'};
constexpr uint32_t kVersion = 3;
constexpr uint64_t kNoSegment = UINT64_MAX;
constexpr uint64_t kAlignment = 64;

struct DataHead {
  char magic[8];
  uint32_t version;
  uint32_t segmentCount;
};
static_assert(sizeof(DataHead) == 16 && std::is_trivially_copyable_v<DataHead>);

struct DataRow {
  uint64_t isInline;
  uint64_t size;
  uint64_t offset;
  base::Sha256Digest key;
};
static_assert(sizeof(DataRow) == 56 && std::is_trivially_copyable_v<DataRow>);

struct ModelHead {
  char magic[8];
  uint32_t version;
  uint32_t isInterpreted;
  base::Sha256Digest pin;
  uint64_t holeBytes;
  uint64_t referenceOnlyCount;
  uint64_t poolCount;
  uint64_t scalesSegment;
  uint64_t choiceBytes;
  uint64_t placeBytes;
  uint64_t modelBytes;
};
static_assert(sizeof(ModelHead) == 104 && std::is_trivially_copyable_v<ModelHead>);

uint64_t roundedUp(uint64_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

uint64_t headBytes(size_t segments) {
  return roundedUp(sizeof(DataHead) + segments * sizeof(DataRow));
}

void append(std::vector<uint8_t>* bytes, const void* data, size_t size) {
  const auto* begin = static_cast<const uint8_t*>(data);
  bytes->insert(bytes->end(), begin, begin + size);
}

}  // namespace

void CachedData::layOut() {
  uint64_t offset = headBytes(segments.size());
  for (Segment& segment : segments) {
    if (!segment.isInline) continue;
    segment.offset = offset;
    offset += roundedUp(segment.size + kReadSlack);
  }
}

std::vector<uint8_t> CachedData::encodedHead() const {
  DataHead head{};
  std::memcpy(head.magic, kDataMagic, sizeof kDataMagic);
  head.version = kVersion;
  head.segmentCount = static_cast<uint32_t>(segments.size());
  std::vector<uint8_t> bytes;
  append(&bytes, &head, sizeof head);
  for (const Segment& segment : segments) {
    const DataRow row{segment.isInline, segment.size, segment.offset, segment.key.bytes};
    append(&bytes, &row, sizeof row);
  }
  bytes.resize(headBytes(segments.size()));
  return bytes;
}

Result<CachedData> CachedData::parse(std::span<const uint8_t> bytes) {
  HEARTH_ASSIGN(const DataHead head,
                readHead<DataHead>(bytes, kDataMagic, kVersion, "A data cache"));
  if (head.segmentCount > (bytes.size() - sizeof head) / sizeof(DataRow))
    return fail(ErrorCode::kBadData, "A data cache of {} bytes claims {} segments.", bytes.size(),
                head.segmentCount);
  CachedData data;
  const uint8_t* at = bytes.data() + sizeof head;
  for (uint32_t i = 0; i < head.segmentCount; ++i, at += sizeof(DataRow)) {
    DataRow row;
    std::memcpy(&row, at, sizeof row);
    const bool isInside = row.offset % kAlignment == 0 && row.offset <= bytes.size() &&
                          row.size <= bytes.size() - row.offset;
    if (row.size == 0 || (row.isInline != 0 && !isInside))
      return fail(ErrorCode::kBadData, "Segment {} of a data cache is {} bytes at {} of {}.", i,
                  row.size, row.offset, bytes.size());
    data.segments.push_back({row.isInline != 0, {row.key}, row.size, row.offset});
  }
  return data;
}

std::vector<uint8_t> CachedPlan::encoded() const {
  ModelHead head{};
  std::memcpy(head.magic, kModelMagic, sizeof kModelMagic);
  head.version = kVersion;
  head.isInterpreted = isInterpreted;
  head.pin = pin.bytes;
  head.holeBytes = holeBytes;
  head.referenceOnlyCount = referenceOnly.size();
  head.poolCount = poolSegments.size();
  head.scalesSegment = scalesSegment ? *scalesSegment : kNoSegment;
  head.choiceBytes = choices.size();
  head.placeBytes = places.size();
  head.modelBytes = model.size();
  std::vector<uint8_t> bytes;
  append(&bytes, &head, sizeof head);
  for (const uint32_t operation : referenceOnly) append(&bytes, &operation, sizeof operation);
  append(&bytes, poolSegments.data(), poolSegments.size() * sizeof(uint32_t));
  append(&bytes, choices.data(), choices.size());
  append(&bytes, places.data(), places.size());
  append(&bytes, model.data(), model.size());
  return bytes;
}

Result<CachedPlan> CachedPlan::parse(std::span<const uint8_t> bytes, size_t segmentCount) {
  HEARTH_ASSIGN(const ModelHead head,
                readHead<ModelHead>(bytes, kModelMagic, kVersion, "A model cache"));
  // Each part is checked against the size first, so that no sum can overflow.
  const uint64_t rest = bytes.size() - sizeof head;
  const uint64_t most = rest / sizeof(uint32_t);
  if (head.referenceOnlyCount > most || head.poolCount > most || head.choiceBytes > rest ||
      head.placeBytes > rest || head.modelBytes > rest ||
      (head.referenceOnlyCount + head.poolCount) * sizeof(uint32_t) + head.choiceBytes +
              head.placeBytes + head.modelBytes !=
          rest)
    return fail(ErrorCode::kBadData, "A model cache of {} bytes claims parts of another size.",
                bytes.size());
  CachedPlan plan;
  plan.isInterpreted = head.isInterpreted != 0;
  plan.pin.bytes = head.pin;
  plan.holeBytes = head.holeBytes;
  const uint8_t* at = bytes.data() + sizeof head;
  const auto next = [&] {
    uint32_t value;
    std::memcpy(&value, at, sizeof value);
    at += sizeof value;
    return value;
  };
  for (uint64_t i = 0; i < head.referenceOnlyCount; ++i) plan.referenceOnly.insert(next());
  for (uint64_t i = 0; i < head.poolCount; ++i) {
    plan.poolSegments.push_back(next());
    if (plan.poolSegments.back() >= segmentCount)
      return fail(ErrorCode::kBadData, "Pool {} of a model cache is segment {} of {}.", i,
                  plan.poolSegments.back(), segmentCount);
  }
  if (head.scalesSegment != kNoSegment) {
    if (head.scalesSegment >= segmentCount)
      return fail(ErrorCode::kBadData, "The scales of a model cache are segment {} of {}.",
                  head.scalesSegment, segmentCount);
    plan.scalesSegment = static_cast<uint32_t>(head.scalesSegment);
    if (std::ranges::find(plan.poolSegments, *plan.scalesSegment) != plan.poolSegments.end())
      return fail(ErrorCode::kBadData, "The scales of a model cache are a pool, too.");
  }
  plan.choices.assign(at, at + head.choiceBytes);
  at += head.choiceBytes;
  plan.places = {at, head.placeBytes};
  at += head.placeBytes;
  plan.model = {at, head.modelBytes};
  return plan;
}

}  // namespace hearth::cpu
