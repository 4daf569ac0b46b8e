// SPDX-License-Identifier: Apache-2.0
#include "cache/table/table_store.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
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

constexpr std::array<std::optional<TableKind>, 3> kKinds = {TableKind::kTokenizer,
                                                            TableKind::kDelegate, std::nullopt};

std::string suffixOf(std::optional<TableKind> kind) {
  return "." + std::string(kind ? tableKindName(*kind) : "table");
}

std::string tableName(const TableKey& key, std::optional<TableKind> kind) {
  return key.hex() + suffixOf(kind);
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

std::string_view tableKindName(TableKind kind) {
  return kind == TableKind::kTokenizer ? "tokenizer" : "delegate";
}

StoreResult<TableStoreOptions> TableStoreOptions::of(const StoreOptions& options, TableKind kind) {
  if (options.mode == StoreMode::kOff)
    return storeFail(StoreReason::kOff, "The weight store is switched off.");
  if (!options.bundle.empty())
    return storeFail(StoreReason::kOff, "A file with packed weights keeps no tables.");
  if (options.path.empty())
    return storeFail(StoreReason::kNoHome, "No folder is named for a store of the user's own.");
  return TableStoreOptions{.path = options.path, .mode = options.mode, .kind = kind};
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
  auto table = readNamed(tableName(key, options_.kind), key);
  if (table || !options_.kind || table.error().reason != StoreReason::kAbsent) return table;
  return readNamed(tableName(key, std::nullopt), key);
}

StoreResult<TableStore::Table> TableStore::readNamed(const std::string& name,
                                                     const TableKey& key) const {
  HEARTH_ASSIGN(const ObjectFile file, openObject(tables_.get(), name));
  auto table = mapTable(file, key, identities_.get());
  if (!table) {
    base::logInfo("A stored table is not used. {}", table.error().message);
    if (isWritten() && table.error().reason == StoreReason::kCorrupt)
      (void)removeFile(tables_.get(), name);
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
  HEARTH_TRY(file.placeAt(tables_.get(), tableName(key, options_.kind)));
  prune();
  return {};
}

void TableStore::remove(const TableKey& key) const {
  if (!isWritten()) return;
  for (const auto& kind : {options_.kind, std::optional<TableKind>()})
    (void)removeFile(tables_.get(), tableName(key, kind));
}

std::vector<TableStore::Entry> TableStore::entries() const {
  std::vector<Entry> entries;
  for (const auto& kind : kKinds)
    for (const std::string& name : namesIn(tables_.get(), suffixOf(kind))) {
      const auto key = TableKey::fromHex(name);
      const auto file = openObject(tables_.get(), name + suffixOf(kind));
      if (key && file)
        entries.push_back({*key, kind, file->generation.size, lastUsed(file->descriptor.get())});
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
    if (removeFile(tables_.get(), tableName(entry.key, entry.kind))) bytes -= entry.bytes;
  }
}

}  // namespace hearth::cache
