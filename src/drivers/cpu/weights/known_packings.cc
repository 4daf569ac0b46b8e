// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/known_packings.h"

#include <cstring>

namespace hearth::cpu {
namespace {

constexpr size_t kEntryBytes = sizeof(base::Sha256Digest) + sizeof(cache::SegmentKey::bytes) +
                               2 * sizeof(uint64_t) + sizeof(uint32_t);

}  // namespace

KnownPackings KnownPackings::parse(std::span<const uint8_t> bytes) {
  KnownPackings known;
  if (bytes.size() % kEntryBytes != 0) return known;
  for (; !bytes.empty(); bytes = bytes.subspan(kEntryBytes)) {
    base::Sha256Digest content;
    Entry entry;
    const uint8_t* from = bytes.data();
    const auto take = [&](auto& value) {
      std::memcpy(&value, from, sizeof value);
      from += sizeof value;
    };
    take(content);
    take(entry.segment.bytes);
    take(entry.offset);
    take(entry.size);
    take(entry.seed);
    known.add(content, entry);
  }
  return known;
}

std::vector<uint8_t> KnownPackings::encoded() const {
  std::vector<uint8_t> bytes;
  bytes.reserve(entries_.size() * kEntryBytes);
  const auto put = [&](const auto& value) {
    const auto* const from = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof value);
  };
  for (const auto& [content, entry] : entries_) {
    put(content);
    put(entry.segment.bytes);
    put(entry.offset);
    put(entry.size);
    put(entry.seed);
  }
  return bytes;
}

void KnownPackings::addOlder(const KnownPackings& older) {
  for (const auto& [content, entry] : older.entries_) {
    if (entries_.size() >= kMost) return;
    entries_.try_emplace(content, entry);
  }
}

const KnownPackings::Entry* KnownPackings::find(const base::Sha256Digest& content) const {
  const auto it = entries_.find(content);
  return it != entries_.end() ? &it->second : nullptr;
}

}  // namespace hearth::cpu
