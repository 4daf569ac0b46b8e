// SPDX-License-Identifier: Apache-2.0
#include "cache/prefix/prefix_store.h"

#include <sys/stat.h>

#include <atomic>
#include <map>
#include <set>
#include <utility>

#include "base/crash_point.h"
#include "base/format.h"
#include "base/log.h"
#include "base/wall_clock.h"
#include "cache/object/boot_id.h"
#include "cache/object/file_use.h"
#include "cache/object/object_file.h"
#include "cache/segment/checked_payload.h"
#include "cache/segment/segment_file.h"

namespace hearth::cache {
namespace {

constexpr char kFolder[] = "prefixes";
constexpr std::string_view kSuffix = ".prefix";
constexpr uint64_t kStatBlock = 512;  // the unit of st_blocks

std::string blockName(const PrefixKey& key) {
  return key.hex() + std::string(kSuffix);
}

// Blocks are segment files, whose keys need not be those of their content.
SegmentKey segmentKeyOf(const PrefixKey& key) {
  return {key.bytes};
}

std::vector<PrefixKey> keysIn(int folder) {
  std::vector<PrefixKey> keys;
  for (const std::string& name : namesIn(folder, kSuffix))
    if (const auto key = PrefixKey::fromHex(name)) keys.push_back(*key);
  return keys;
}

StoreResult<PrefixBlock> headOf(int fd, uint64_t size, const PrefixKey& key) {
  HEARTH_ASSIGN(const SegmentInfo info, readSegmentInfo(fd, size, segmentKeyOf(key)));
  if (info.payloadSize < kPrefixHeadBytes)
    return storeFail(StoreReason::kCorrupt, "A stored prefix has {} bytes, fewer than its head.",
                     info.payloadSize);
  std::vector<uint8_t> head(kPrefixHeadBytes);
  HEARTH_TRY(readAt(fd, head.data(), head.size(), info.payloadSize - kPrefixHeadBytes));
  HEARTH_ASSIGN(PrefixBlock block, parsePrefixHead(head));
  block.key = key;
  return block;
}

}  // namespace

StoreResult<PrefixStoreOptions> PrefixStoreOptions::of(const StoreOptions& options) {
  if (options.mode == StoreMode::kOff)
    return storeFail(StoreReason::kOff, "The weight store is switched off.");
  if (!options.bundle.empty())
    return storeFail(StoreReason::kOff, "A file with packed weights keeps no prefixes.");
  if (options.path.empty())
    return storeFail(StoreReason::kNoHome, "No folder is named for a store of the user's own.");
  return PrefixStoreOptions{.path = options.path, .mode = options.mode};
}

StoreResult<std::shared_ptr<PrefixStore>> PrefixStore::open(const PrefixStoreOptions& options) {
  if (options.mode == StoreMode::kOff)
    return storeFail(StoreReason::kOff, "The store of prefixes is switched off.");
  const bool isWritten = options.mode != StoreMode::kReadOnly;
  std::shared_ptr<PrefixStore> store(new PrefixStore(options));
  HEARTH_ASSIGN(store->folder_,
                StoreFolder::open(options.path, isWritten ? StoreFolder::Access::kWrite
                                                          : StoreFolder::Access::kRead));
  HEARTH_ASSIGN(store->blocks_, openFolder(store->folder_->root(), kFolder, isWritten));
  store->identities_ =
      std::make_unique<IdentityTable>(store->folder_->root(), store->folder_->path(), isWritten);
  return store;
}

StoreResult<ObjectFile> PrefixStore::openBlock(const PrefixKey& key) const {
  HEARTH_ASSIGN(ObjectFile file, openObject(blocks_.get(), blockName(key)));
  struct stat status;
  // Texts can be read out of these files.
  if (::fstat(file.descriptor.get(), &status) != 0 || (status.st_mode & 077) != 0)
    return storeFail(StoreReason::kForeign, "Others may read the stored prefix {}.", key.hex());
  return file;
}

StoreResult<memory::Mapping> PrefixStore::mapBlock(const ObjectFile& file, const PrefixKey& key,
                                                   std::optional<size_t> size) const {
  const int fd = file.descriptor.get();
  HEARTH_ASSIGN(const SegmentInfo info,
                readSegmentInfo(fd, file.generation.size, segmentKeyOf(key)));
  const uint64_t expected = size.value_or(0) + kPrefixHeadBytes;
  if (info.payloadSize < expected || (size && info.payloadSize != expected))
    return storeFail(StoreReason::kCorrupt, "The stored prefix {} has {} bytes, not {}.", key.hex(),
                     info.payloadSize, expected);
  return mapCheckedPayload(fd, info, identities_.get());
}

StoreResult<PrefixStore::Found> PrefixStore::read(const PrefixKey& key,
                                                  std::optional<size_t> size) const {
  HEARTH_ASSIGN(ObjectFile file, openBlock(key));
  const int fd = file.descriptor.get();
  const int64_t age = base::wallClock() - lastUsed(fd);
  StoreResult<memory::Mapping> block;
  if (age > std::chrono::nanoseconds(options_.maxAge).count())
    block = storeFail(StoreReason::kAbsent, "The stored prefix {} was not used for too long.",
                      key.hex());
  else
    block = mapBlock(file, key, size);
  if (!block) {
    base::logInfo("A stored prefix is not used. {}", block.error().message);
    const StoreReason reason = block.error().reason;
    if (isWritten() && (reason == StoreReason::kAbsent || reason == StoreReason::kCorrupt))
      (void)removeFile(blocks_.get(), blockName(key));
    return std::unexpected(std::move(block.error()));
  }
  if (isWritten()) noteUse(fd);
  return Found{std::move(file.descriptor), *std::move(block)};
}

StoreStatus PrefixStore::write(const PrefixBlock& block, std::vector<uint8_t> data) const {
  if (!isWritten()) return storeFail(StoreReason::kReadOnly, "The store's mode is read-only.");
  if (data.size() > options_.maxBytes)
    return storeFail(StoreReason::kOverLimit, "{} bytes of a prefix exceed the limit of {}.",
                     data.size(), options_.maxBytes);
  const std::vector<uint8_t> head = makePrefixHead(block);
  data.insert(data.end(), head.begin(), head.end());
  HEARTH_ASSIGN(TempObject file, TempObject::create(folder_->temporary()));
  HEARTH_ASSIGN([[maybe_unused]] const SegmentInfo written,
                writeSegmentFile(file.fd(), segmentKeyOf(block.key), data, currentBootId()));
  HEARTH_TRY(file.placeAt(blocks_.get(), blockName(block.key)));
  prune();
  return {};
}

std::vector<PrefixStore::Entry> PrefixStore::entries() const {
  std::vector<Entry> entries;
  for (const PrefixKey& key : keysIn(blocks_.get())) {
    const auto file = openBlock(key);
    struct stat status;
    if (!file || ::fstat(file->descriptor.get(), &status) != 0) continue;
    Entry entry;
    entry.bytesOnDisk = static_cast<uint64_t>(status.st_blocks) * kStatBlock;
    entry.lastUsed = base::toNanoseconds(status.st_mtim);
    auto block = headOf(file->descriptor.get(), file->generation.size, key);
    entry.isCorrupt = !block;
    if (block) entry.block = std::move(*block);
    entry.block.key = key;
    entries.push_back(std::move(entry));
  }
  return entries;
}

StoreStatus PrefixStore::remove(const PrefixKey& key) const {
  if (!isWritten()) return storeFail(StoreReason::kReadOnly, "The store's mode is read-only.");
  HEARTH_TRY(removeFile(blocks_.get(), blockName(key)));
  HEARTH_CRASH_POINT("prefix.after_removal");
  return {};
}

// A block without its predecessor is never found, so those that no other follows go first.
void PrefixStore::prune() const {
  std::map<PrefixKey, Entry> left;
  std::map<PrefixKey, size_t> followers;
  uint64_t bytes = 0;
  for (Entry& entry : entries()) {
    bytes += entry.bytesOnDisk;
    if (!entry.isCorrupt) ++followers[entry.block.predecessor];
    left.emplace(entry.block.key, std::move(entry));
  }
  std::set<std::pair<int64_t, PrefixKey>> last;
  for (const auto& [key, entry] : left)
    if (followers[key] == 0) last.emplace(entry.isCorrupt ? 0 : entry.lastUsed, key);
  const int64_t oldest = base::wallClock() - std::chrono::nanoseconds(options_.maxAge).count();
  while (!last.empty() && (bytes > options_.maxBytes || last.begin()->first < oldest)) {
    const Entry& entry = left.at(last.begin()->second);
    last.erase(last.begin());
    if (!remove(entry.block.key)) continue;
    bytes -= entry.bytesOnDisk;
    const auto predecessor = left.find(entry.block.predecessor);
    if (!entry.isCorrupt && predecessor != left.end() && --followers[predecessor->first] == 0)
      last.emplace(predecessor->second.lastUsed, predecessor->first);
  }
}

Result<base::Sha256Digest> PrefixStore::contentHash(const ContentSource& source) const {
  std::atomic<uint64_t> hashed = 0;
  return rememberedHash(source, 0, identities_.get(), hashed);
}

}  // namespace hearth::cache
