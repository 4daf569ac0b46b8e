// SPDX-License-Identifier: Apache-2.0
#include "cache/table/table_store.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/wall_clock.h"
#include "cache/object/boot_id.h"
#include "cache/object/file_use.h"
#include "cache/object/object_file.h"
#include "cache/segment/checked_payload.h"
#include "cache/segment/segment_file.h"

namespace hearth::cache {
namespace {

constexpr char kTables[] = "tables";
constexpr std::string_view kTableSuffix = ".table";

std::string tableName(std::string_view key) {
  return std::string(key) + std::string(kTableSuffix);
}

StoreResult<TableStore::Table> mapTable(const ObjectFile& file, const TableKey& key,
                                        ContentMemory* memory) {
  const int fd = file.descriptor.get();
  // Tables are segment files, whose keys need not be those of their content.
  HEARTH_ASSIGN(const SegmentInfo info,
                readSegmentInfo(fd, file.generation.size, SegmentKey{key.bytes}));
  return mapCheckedPayload(fd, info, memory);
}

}  // namespace

StoreResult<TableStoreOptions> TableStoreOptions::of(const StoreOptions& options) {
  if (options.mode == StoreMode::kOff)
    return storeFail(StoreReason::kOff, "The weight store is switched off.");
  if (!options.bundle.empty())
    return storeFail(StoreReason::kOff, "A file with packed weights keeps no tables.");
  if (options.path.empty())
    return storeFail(StoreReason::kNoHome, "No folder is named for a store of the user's own.");
  return TableStoreOptions{.path = options.path, .mode = options.mode};
}

StoreResult<std::shared_ptr<const TableStore>> TableStore::open(const TableStoreOptions& options) {
  if (options.mode == StoreMode::kOff)
    return storeFail(StoreReason::kOff, "The store of tables is switched off.");
  const bool isWritten = options.mode != StoreMode::kReadOnly;
  std::shared_ptr<TableStore> store(new TableStore(options));
  HEARTH_ASSIGN(store->folder_,
                StoreFolder::open(options.path, isWritten ? StoreFolder::Access::kWrite
                                                          : StoreFolder::Access::kRead));
  HEARTH_ASSIGN(store->tables_, openFolder(store->folder_->root(), kTables, isWritten));
  store->identities_ =
      std::make_unique<IdentityTable>(store->folder_->root(), store->folder_->path(), isWritten);
  return store;
}

StoreResult<TableStore::Table> TableStore::read(const TableKey& key) const {
  HEARTH_ASSIGN(const ObjectFile file, openObject(tables_.get(), tableName(key.hex())));
  auto table = mapTable(file, key, identities_.get());
  if (!table) {
    base::logInfo("A stored table is not used. {}", table.error().message);
    if (isWritten() && table.error().reason == StoreReason::kCorrupt)
      (void)removeFile(tables_.get(), tableName(key.hex()));
    return table;
  }
  if (isWritten()) noteUse(file.descriptor.get());
  return table;
}

StoreStatus TableStore::write(const TableKey& key, std::span<const uint8_t> table) const {
  if (!isWritten()) return storeFail(StoreReason::kReadOnly, "The store's mode is read-only.");
  if (table.size() > options_.maxBytes)
    return storeFail(StoreReason::kOverLimit, "{} bytes of a table exceed the limit of {}.",
                     table.size(), options_.maxBytes);
  HEARTH_ASSIGN(TempObject file, TempObject::create(folder_->temporary()));
  HEARTH_ASSIGN([[maybe_unused]] const SegmentInfo written,
                writeSegmentFile(file.fd(), SegmentKey{key.bytes}, table, currentBootId()));
  HEARTH_TRY(file.placeAt(tables_.get(), tableName(key.hex())));
  prune();
  return {};
}

void TableStore::remove(const TableKey& key) const {
  if (isWritten()) (void)removeFile(tables_.get(), tableName(key.hex()));
}

std::vector<TableStore::Entry> TableStore::entries() const {
  std::vector<Entry> entries;
  for (const std::string& name : namesIn(tables_.get(), kTableSuffix)) {
    const auto key = TableKey::fromHex(name);
    const auto file = openObject(tables_.get(), tableName(name));
    if (key && file)
      entries.push_back({*key, file->generation.size, lastUsed(file->descriptor.get())});
  }
  std::ranges::sort(entries, std::ranges::greater(), &Entry::lastUsed);
  return entries;
}

void TableStore::prune() const {
  std::vector<Entry> left = entries();
  uint64_t bytes = 0;
  for (const Entry& entry : left) bytes += entry.bytes;
  const int64_t oldest = base::wallClock() - std::chrono::nanoseconds(options_.maxAge).count();
  for (; !left.empty(); left.pop_back()) {
    const Entry& entry = left.back();
    if (bytes <= options_.maxBytes && entry.lastUsed >= oldest) return;
    if (removeFile(tables_.get(), tableName(entry.key.hex()))) bytes -= entry.bytes;
  }
}

}  // namespace hearth::cache
