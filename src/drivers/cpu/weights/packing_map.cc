// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/packing_map.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "drivers/cpu/weights/stored_head.h"

namespace hearth::cpu {
namespace {

constexpr char kMagic[8] = {'H', 'C', 'P', 'U', 'P', 'L', 'A', 'N'};
constexpr uint32_t kVersion = 3;

struct Head {
  char magic[8];
  uint32_t version;
  uint32_t graphCount;
  uint32_t segmentCount;
  uint32_t partlyCount;
  uint64_t entryCount;
};
static_assert(sizeof(Head) == 32 && std::is_trivially_copyable_v<Head>);

struct StoredEntry {
  uint32_t graph;
  uint32_t reserved;
  uint32_t operation;
  uint32_t role;
  uint32_t seed;
  uint32_t segment;
  uint64_t offset;
  uint64_t size;
};
static_assert(sizeof(StoredEntry) == 40 && std::is_trivially_copyable_v<StoredEntry>);

}  // namespace

std::optional<uint32_t> PackingMap::graphNumber(const base::Sha256Digest& graph) const {
  const auto found = std::ranges::find(graphs, graph);
  if (found == graphs.end()) return std::nullopt;
  return static_cast<uint32_t>(found - graphs.begin());
}

bool PackingMap::isWhole(uint32_t graph) const {
  return !std::ranges::binary_search(partly, graph);
}

std::vector<uint8_t> PackingMap::encoded() const {
  Head head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.version = kVersion;
  head.graphCount = static_cast<uint32_t>(graphs.size());
  head.segmentCount = static_cast<uint32_t>(segmentSizes.size());
  head.partlyCount = static_cast<uint32_t>(partly.size());
  head.entryCount = entries.size();
  std::vector<uint8_t> bytes;
  const auto append = [&](const void* data, size_t size) {
    const auto* begin = static_cast<const uint8_t*>(data);
    bytes.insert(bytes.end(), begin, begin + size);
  };
  append(&head, sizeof head);
  append(graphs.data(), graphs.size() * sizeof(base::Sha256Digest));
  append(segmentSizes.data(), segmentSizes.size() * sizeof(uint64_t));
  append(partly.data(), partly.size() * sizeof(uint32_t));
  for (const Entry& entry : entries) {
    const StoredEntry stored{entry.graph,      0,          entry.place.operation,
                             entry.place.role, entry.seed, entry.segment,
                             entry.offset,     entry.size};
    append(&stored, sizeof stored);
  }
  return bytes;
}

Result<PackingMap> PackingMap::parse(std::span<const uint8_t> bytes, size_t segmentCount) {
  HEARTH_ASSIGN(const Head head, readHead<Head>(bytes, kMagic, kVersion, "A plan of hearth-cpu"));
  const uint64_t rest = bytes.size() - sizeof head;
  // Each count is checked against the size first, so that no product can overflow.
  if (head.segmentCount != segmentCount || head.segmentCount > rest / sizeof(uint64_t) ||
      head.entryCount > rest / sizeof(StoredEntry) ||
      head.graphCount > rest / sizeof(base::Sha256Digest) || head.partlyCount > head.graphCount ||
      head.graphCount * sizeof(base::Sha256Digest) + head.segmentCount * sizeof(uint64_t) +
              head.partlyCount * sizeof(uint32_t) + head.entryCount * sizeof(StoredEntry) !=
          rest)
    return fail(ErrorCode::kBadData,
                "A plan of hearth-cpu of {} bytes and {} segments claims {} graphs, {} segments "
                "and {} places.",
                bytes.size(), segmentCount, head.graphCount, head.segmentCount, head.entryCount);
  PackingMap plan;
  plan.graphs.resize(head.graphCount);
  plan.segmentSizes.resize(segmentCount);
  const uint8_t* at = bytes.data() + sizeof head;
  if (!plan.graphs.empty())
    std::memcpy(plan.graphs.data(), at, plan.graphs.size() * sizeof(base::Sha256Digest));
  at += plan.graphs.size() * sizeof(base::Sha256Digest);
  if (segmentCount != 0) std::memcpy(plan.segmentSizes.data(), at, segmentCount * sizeof(uint64_t));
  at += segmentCount * sizeof(uint64_t);
  plan.partly.resize(head.partlyCount);
  if (!plan.partly.empty())
    std::memcpy(plan.partly.data(), at, plan.partly.size() * sizeof(uint32_t));
  at += plan.partly.size() * sizeof(uint32_t);
  for (size_t i = 0; i < plan.partly.size(); ++i)
    if (plan.partly[i] >= head.graphCount || (i > 0 && plan.partly[i] <= plan.partly[i - 1]))
      return fail(ErrorCode::kBadData, "A plan of hearth-cpu names graph {} of {} as not whole.",
                  plan.partly[i], head.graphCount);
  plan.entries.reserve(static_cast<size_t>(head.entryCount));
  for (uint64_t i = 0; i < head.entryCount; ++i, at += sizeof(StoredEntry)) {
    StoredEntry stored;
    std::memcpy(&stored, at, sizeof stored);
    const bool isInside = stored.graph < head.graphCount && stored.reserved == 0 &&
                          stored.segment < segmentCount && stored.size != 0 &&
                          stored.size <= plan.segmentSizes[stored.segment] &&
                          stored.offset <= plan.segmentSizes[stored.segment] - stored.size;
    if (!isInside || stored.offset % kPackingAlignment != 0)
      return fail(ErrorCode::kBadData,
                  "Place {} of a plan of hearth-cpu is {} bytes at {} of segment {} for graph {}.",
                  i, stored.size, stored.offset, stored.segment, stored.graph);
    plan.entries.push_back({stored.graph,
                            {stored.operation, stored.role},
                            stored.seed,
                            stored.segment,
                            stored.offset,
                            stored.size});
  }
  return plan;
}

}  // namespace hearth::cpu
