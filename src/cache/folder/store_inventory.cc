// SPDX-License-Identifier: Apache-2.0
#include "cache/folder/store_inventory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <memory>
#include <string_view>

#include "base/descriptor.h"
#include "cache/blob/blob_cache_file.h"
#include "cache/object/object_file.h"
#include "cache/store/store_facts.h"

namespace hearth::cache {
namespace {

struct Entry {
  std::string name;
  struct stat status;
  uint64_t bytesOnDisk() const { return static_cast<uint64_t>(status.st_blocks) * 512; }
};

struct CloseFolder {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

// The entries of a folder; none when it cannot be read. Symbolic links are not followed.
std::vector<Entry> entriesOf(int folder, const char* name = ".") {
  std::vector<Entry> entries;
  const int fd =
      folder < 0 ? -1 : ::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  const std::unique_ptr<DIR, CloseFolder> stream(fd < 0 ? nullptr : ::fdopendir(fd));
  if (stream == nullptr) {
    if (fd >= 0) base::Descriptor close(fd);
    return entries;
  }
  while (const dirent* item = ::readdir(stream.get())) {
    Entry entry{.name = item->d_name};
    if (entry.name == "." || entry.name == "..") continue;
    if (::fstatat(fd, item->d_name, &entry.status, AT_SYMLINK_NOFOLLOW) == 0)
      entries.push_back(std::move(entry));
  }
  return entries;
}

template <typename Visit>
void visitSegments(const StoreFolder& folder, Visit visit) {
  for (const Entry& shard : entriesOf(folder.segments())) {
    if (!S_ISDIR(shard.status.st_mode)) continue;
    for (const Entry& entry : entriesOf(folder.segments(), shard.name.c_str())) {
      const std::string_view name = entry.name;
      const bool isDurable = name.ends_with(".seg");
      if (!S_ISREG(entry.status.st_mode) || (!isDurable && !name.ends_with(".new"))) continue;
      const auto key = SegmentKey::fromHex(shard.name + entry.name.substr(0, name.size() - 4));
      if (key) visit(*key, entry, isDurable);
    }
  }
}

int64_t modified(const Entry& entry) {
  return FileGeneration::of(entry.status).modified;
}

std::vector<StoreInventory::Other> othersOf(int folder) {
  std::vector<StoreInventory::Other> others;
  for (const Entry& entry : entriesOf(folder)) {
    const auto file = openObject(folder, entry.name);
    others.push_back({.name = entry.name,
                      .bytesOnDisk = entry.bytesOnDisk(),
                      .changed = FileGeneration::of(entry.status).changed,
                      .isLocked = file && isLocked(file->descriptor.get())});
  }
  return others;
}

StoreInventory::Plan planOf(const StoreFolder& folder, const PlanKey& key, const Entry& entry) {
  StoreInventory::Plan plan{
      .key = key, .bytesOnDisk = entry.bytesOnDisk(), .lastUsed = modified(entry)};
  struct stat stamp;
  if (::fstatat(folder.stamps(), key.hex().c_str(), &stamp, AT_SYMLINK_NOFOLLOW) == 0)
    plan.lastUsed = FileGeneration::of(stamp).modified;
  const auto file = openObject(folder.plans(), entry.name);
  if (!file) {
    plan.isCorrupt = true;
    return plan;
  }
  plan.isInUse = isLocked(file->descriptor.get());
  auto content = readPlanFile(file->descriptor.get(), file->generation.size, key);
  plan.isCorrupt = !content;
  if (content) {
    plan.fingerprint = content->fingerprint;
    plan.segments = std::move(content->segments);
    plan.description = std::move(content->description);
  }
  return plan;
}

StoreInventory::Facts factsOf(const StoreFolder& folder) {
  StoreInventory::Facts facts;
  struct stat status;
  if (::fstatat(folder.root(), kFactsFile, &status, AT_SYMLINK_NOFOLLOW) != 0) return facts;
  facts.bytesOnDisk = static_cast<uint64_t>(status.st_blocks) * 512;
  const auto blobs = readBlobCacheFile(folder.root(), kFactsFile, kFactLimits);
  if (!blobs) {
    facts.isCorrupt = blobs.error().reason != StoreReason::kAbsent;
    return facts;
  }
  facts.entries = StoreInventory::Facts::of(*blobs).entries;
  return facts;
}

}  // namespace

StoreInventory::Facts StoreInventory::Facts::of(const BlobMap& blobs) {
  Facts facts;
  for (const auto& [key, blob] : blobs)
    facts.entries.push_back({.kind = key.substr(0, key.find('\0')),
                             .bytes = key.size() + blob.value.size(),
                             .lastUsed = blob.used});
  return facts;
}

StoreInventory StoreInventory::of(const StoreFolder& folder) {
  StoreInventory inventory;
  visitSegments(folder, [&](const SegmentKey& key, const Entry& entry, bool isDurable) {
    Segment& segment = inventory.segments[key];
    segment.bytesOnDisk += entry.bytesOnDisk();
    segment.written = std::max(segment.written, modified(entry));
    segment.isDurable |= isDurable;
    inventory.bytesOnDisk += entry.bytesOnDisk();
  });
  for (const Entry& entry : entriesOf(folder.plans())) {
    const std::string_view name = entry.name;
    const auto key =
        name.ends_with(".plan") ? PlanKey::fromHex(name.substr(0, name.size() - 5)) : std::nullopt;
    if (!key || !S_ISREG(entry.status.st_mode)) continue;
    inventory.plans.push_back(planOf(folder, *key, entry));
    inventory.bytesOnDisk += entry.bytesOnDisk();
  }
  for (const Plan& plan : inventory.plans)
    for (const SegmentKey& key : plan.segments)
      if (const auto segment = inventory.segments.find(key); segment != inventory.segments.end())
        ++segment->second.plans;
  inventory.temporaries = othersOf(folder.temporary());
  for (const Other& file : inventory.temporaries) inventory.bytesOnDisk += file.bytesOnDisk;
  inventory.stamps = othersOf(folder.stamps());
  inventory.facts = factsOf(folder);
  return inventory;
}

uint64_t StoreInventory::bytesOf(const StoreFolder& folder) {
  uint64_t bytes = 0;
  visitSegments(folder,
                [&](const SegmentKey&, const Entry& entry, bool) { bytes += entry.bytesOnDisk(); });
  for (const int part : {folder.plans(), folder.temporary()})
    for (const Entry& entry : entriesOf(part)) bytes += entry.bytesOnDisk();
  return bytes;
}

}  // namespace hearth::cache
