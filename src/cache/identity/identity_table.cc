// SPDX-License-Identifier: Apache-2.0
#include "cache/identity/identity_table.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>

#include "base/crash_point.h"
#include "base/file_size_signal.h"
#include "base/fork_gate.h"
#include "base/log.h"
#include "base/wall_clock.h"
#include "cache/identity/key_hash.h"
#include "cache/object/sql_statement.h"

namespace hearth::cache {
namespace {

constexpr char kFile[] = "identity.sqlite";
constexpr int kBusyMilliseconds = 50;

// Distinct from the key of a complete check, for which an earlier build would take it.
base::Sha256Digest partKey(const base::Sha256Digest& check) {
  base::Sha256 hash;
  hash.update("checked blocks", 14);
  addToKey(hash, check);
  return hash.finish();
}

// One transaction of several statements, or none where `isWanted` is false. What is not committed
// is undone.
class Transaction {
 public:
  Transaction(sqlite3* database, bool isWanted) : database_(database) {
    isOpen_ = isWanted && run("BEGIN") == SQLITE_OK;
  }
  ~Transaction() {
    if (isOpen_) run("ROLLBACK");
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // SQLite's code.
  int commit() {
    if (!isOpen_) return SQLITE_OK;
    const int code = run("COMMIT");
    isOpen_ = code != SQLITE_OK;
    return code;
  }

 private:
  int run(const char* text) { return sqlite3_exec(database_, text, nullptr, nullptr, nullptr); }

  sqlite3* const database_;
  bool isOpen_ = false;
};

// Runs a SELECT of digest, time and checksum; SQLite's code, SQLITE_OK also where there is no entry
// or only a damaged one.
int findEntry(sqlite3_stmt* statement, const base::Sha256Digest& key,
              std::optional<IdentityEntry>& entry) {
  sqlite3_bind_blob(statement, 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
  const int code = sqlite3_step(statement);
  if (code == SQLITE_ROW && isBlobOf(statement, 0, key.size()) &&
      isBlobOf(statement, 2, key.size())) {
    IdentityEntry found;
    std::memcpy(found.digest.data(), sqlite3_column_blob(statement, 0), key.size());
    found.when = sqlite3_column_int64(statement, 1);
    const base::Sha256Digest expected = checksumOf(key, found);
    if (std::memcmp(expected.data(), sqlite3_column_blob(statement, 2), key.size()) == 0)
      entry = found;
  }
  return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

// Runs an INSERT of an entry. SQLite's code.
int addEntry(sqlite3_stmt* statement, const base::Sha256Digest& key, const IdentityEntry& entry) {
  const base::Sha256Digest check = checksumOf(key, entry);
  const auto bind = [&](int column, const base::Sha256Digest& value) {
    sqlite3_bind_blob(statement, column, value.data(), static_cast<int>(value.size()),
                      SQLITE_STATIC);
  };
  bind(1, key);
  bind(2, entry.digest);
  sqlite3_bind_int64(statement, 3, entry.when);
  bind(4, check);
  const int code = sqlite3_step(statement);
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

base::Sha256Digest tagKeyPlace() {
  constexpr std::string_view kName = "tag key";
  return base::Sha256::of({reinterpret_cast<const uint8_t*>(kName.data()), kName.size()});
}

}  // namespace

IdentityTable::IdentityTable(int folder, std::string path, bool writable)
    : folder_(folder), path_(std::move(path) + '/' + kFile), writable_(writable) {}

IdentityTable::~IdentityTable() {
  close();
}

void IdentityTable::close() {
  closeDatabase(database_);
  isReadyForWriting_ = false;
}

bool IdentityTable::open(bool forWriting) {
  const base::FileSizeSignalOff signalOff;
  if (database_ != nullptr && (!forWriting || isReadyForWriting_)) return true;
  if (failed_) return false;
  // A broken file is removed in the first attempt, so there is a second one.
  for (int attempt = 0; attempt < 2; ++attempt) {
    int code = SQLITE_OK;
    if (database_ == nullptr) {
      if (!mayBeDatabase(folder_, kFile)) {
        if (writable_) unlinkDatabase(folder_, kFile);
        if (!mayBeDatabase(folder_, kFile)) break;
      }
      struct stat status;
      if (::fstatat(folder_, kFile, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno != ENOENT || !writable_) break;
        if (!forWriting) return false;
        // Created here, so that its mode is right and no link is followed.
        const base::Descriptor made(
            ::openat(folder_, kFile, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
      }
      code = sqlite3_open_v2(path_.c_str(), &database_,
                             (writable_ ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) |
                                 SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
                             nullptr);
      if (code == SQLITE_OK) {
        sqlite3_busy_timeout(database_, kBusyMilliseconds);
        // With a mapping, truncating the file would end the process.
        code = sqlite3_exec(database_, "PRAGMA mmap_size=0", nullptr, nullptr, nullptr);
      }
    }
    // Skipped for reading, which is on the path of every start.
    if (code == SQLITE_OK && forWriting) {
      // Without syncs a power failure may damage the file, which is noticed; a killed process
      // cannot.
      code = sqlite3_exec(database_,
                          "PRAGMA synchronous=OFF;"
                          "CREATE TABLE IF NOT EXISTS entry1(key BLOB PRIMARY KEY, digest BLOB, "
                          "time INTEGER, checksum BLOB) WITHOUT ROWID",
                          nullptr, nullptr, nullptr);
      isReadyForWriting_ = code == SQLITE_OK;
    }
    if (code == SQLITE_OK) return true;
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
      close();
      return false;
    }
    if (!discardIfBroken(code)) break;
  }
  close();
  failed_ = true;
  base::logDebug("The file {} cannot be used; files are hashed at each start.", path_);
  return false;
}

bool IdentityTable::discardIfBroken(int code) {
  if (code != SQLITE_CORRUPT && code != SQLITE_NOTADB && code != SQLITE_FORMAT &&
      code != SQLITE_ERROR && code != SQLITE_SCHEMA && code != SQLITE_IOERR)
    return false;
  // The limit is RLIMIT_FSIZE of this process; the file is right.
  if (code == SQLITE_IOERR && database_ != nullptr && sqlite3_system_errno(database_) == EFBIG)
    return false;
  close();
  if (!writable_) return false;
  base::logInfo("The file {} is damaged and is made anew.", path_);
  for (const char* suffix : {"", "-journal", "-wal", "-shm"})
    ::unlinkat(folder_, (std::string(kFile) + suffix).c_str(), 0);
  return true;
}

std::optional<IdentityEntry> IdentityTable::read(const base::Sha256Digest& key) {
  return read({&key, 1}).front();
}

std::vector<std::optional<IdentityEntry>> IdentityTable::read(
    std::span<const base::Sha256Digest> keys) {
  std::vector<std::optional<IdentityEntry>> entries(keys.size());
  const base::FileSizeSignalOff signalOff;
  const std::lock_guard lock(mutex_);
  if (!open(false)) return entries;
  constexpr std::string_view kSelect = "SELECT digest, time, checksum FROM entry1 WHERE key = ?";
  int code = 0;
  {
    SqlStatement statement = prepareStatement(database_, kSelect, code);
    // A file without the table is new or broken; creating the table tells which.
    if (code == SQLITE_ERROR && writable_ && !isReadyForWriting_) {
      if (!open(true)) return entries;
      statement = prepareStatement(database_, kSelect, code);
    }
    // Otherwise each look-up would lock the file and look whether it has changed.
    const Transaction transaction(database_, code == SQLITE_OK && keys.size() > 1);
    for (size_t i = 0; i < keys.size() && code == SQLITE_OK; ++i) {
      code = findEntry(statement.get(), keys[i], entries[i]);
      sqlite3_reset(statement.get());
    }
  }
  discardIfBroken(code);
  return entries;
}

void IdentityTable::write(const base::Sha256Digest& key, const IdentityEntry& entry,
                          IfThere ifThere) {
  const KeyedEntry keyed{key, entry};
  write({&keyed, 1}, ifThere);
}

void IdentityTable::write(std::span<const KeyedEntry> entries, IfThere ifThere) {
  if (!writable_ || entries.empty()) return;
  const base::FileSizeSignalOff signalOff;
  const std::lock_guard lock(mutex_);
  if (!open(true)) return;
  int code = 0;
  {
    const SqlStatement statement = prepareStatement(
        database_,
        ifThere == IfThere::kReplace ? "INSERT OR REPLACE INTO entry1 VALUES(?, ?, ?, ?)"
                                     : "INSERT OR IGNORE INTO entry1 VALUES(?, ?, ?, ?)",
        code);
    Transaction transaction(database_, code == SQLITE_OK && entries.size() > 1);
    for (size_t i = 0; i < entries.size() && code == SQLITE_OK; ++i) {
      code = addEntry(statement.get(), entries[i].key, entries[i].entry);
      sqlite3_reset(statement.get());
    }
    HEARTH_CRASH_POINT("identity.before_commit");
    if (code == SQLITE_OK) code = transaction.commit();
    HEARTH_CRASH_POINT("identity.after_commit");
  }
  discardIfBroken(code);
}

std::optional<base::Sha256Digest> IdentityTable::content(const FileIdentity& file, uint64_t offset,
                                                         uint64_t size) {
  const base::Sha256Digest key = contentKey(file, offset, size);
  std::optional<IdentityEntry> entry = findLatestEntry(folder_, key);
  if (!entry) {
    entry = read(key);
    if (entry && writable_) keepLatestEntry(folder_, key, *entry);
  }
  if (!entry || !isReadWellAfterChange(file, entry->when)) return std::nullopt;
  return entry->digest;
}

void IdentityTable::rememberContent(const FileIdentity& file, uint64_t offset, uint64_t size,
                                    const base::Sha256Digest& digest, int64_t readAt) {
  const base::Sha256Digest key = contentKey(file, offset, size);
  write(key, {digest, readAt});
  if (writable_) keepLatestEntry(folder_, key, {digest, readAt});
}

// Whether the database is this user's and nobody else can read it.
bool IdentityTable::isPrivate() const {
  struct stat status;
  return ::fstatat(folder_, kFile, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & 077) == 0;
}

std::optional<base::UniversalHash::Key> IdentityTable::tagKey() {
  const std::lock_guard lock(keyMutex_);
  if (tagKey_ || !writable_ || !isPrivate()) return tagKey_;
  if (const std::optional<IdentityEntry> entry = read(tagKeyPlace())) {
    tagKey_.emplace();
    std::copy_n(entry->digest.begin(), tagKey_->size(), tagKey_->begin());
  }
  return tagKey_;
}

std::optional<base::UniversalHash::Key> IdentityTable::makeTagKey() {
  if (auto key = tagKey()) return key;
  IdentityEntry entry{{}, base::wallClock()};
  if (!writable_ || ::getrandom(entry.digest.data(), sizeof(base::UniversalHash::Key), 0) !=
                        ssize_t{sizeof(base::UniversalHash::Key)})
    return std::nullopt;
  // Another process may have been quicker; its key counts.
  write(tagKeyPlace(), entry, IfThere::kKeep);
  return tagKey();
}

std::optional<base::Sha256Digest> IdentityTable::namedContent(const base::Sha256Digest& name) {
  const std::optional<IdentityEntry> entry = read(name);
  if (!entry) return std::nullopt;
  return entry->digest;
}

void IdentityTable::nameContent(const base::Sha256Digest& name, const base::Sha256Digest& digest) {
  write(name, {digest, base::wallClock()});
}

base::Sha256Digest IdentityTable::checkedKey(const SegmentKey& key, const FileGeneration& file,
                                             const BootId& boot) {
  base::Sha256 hash;
  hash.update("checked", 8);
  addToKey(hash, key.bytes);
  addToKey(hash, file);
  // An image may be replaced within one boot; its segments have then not been checked.
  addToKey(hash, file.mounting);
  addToKey(hash, boot);
  return hash.finish();
}

std::vector<uint64_t> IdentityTable::checkedBlocks(std::span<const base::Sha256Digest> checks) {
  std::vector<uint64_t> blocks(checks.size());
  std::vector<size_t> open;
  std::vector<base::Sha256Digest> parts;
  const std::vector<std::optional<IdentityEntry>> whole = read(checks);
  for (size_t i = 0; i < checks.size(); ++i) {
    if (whole[i]) {
      blocks[i] = UINT64_MAX;
    } else {
      open.push_back(i);
      parts.push_back(partKey(checks[i]));
    }
  }
  if (open.empty()) return blocks;
  const std::vector<std::optional<IdentityEntry>> begun = read(parts);
  for (size_t i = 0; i < open.size(); ++i)
    if (begun[i]) std::memcpy(&blocks[open[i]], begun[i]->digest.data(), sizeof blocks[0]);
  return blocks;
}

void IdentityTable::rememberCheckedBlocks(std::span<const CheckedBlocks> checks) {
  std::vector<KeyedEntry> entries;
  for (const auto& [id, blocks, isAll] : checks) {
    IdentityEntry entry{{}, base::wallClock()};
    if (!isAll) std::memcpy(entry.digest.data(), &blocks, sizeof blocks);
    entries.push_back({isAll ? id : partKey(id), entry});
  }
  write(entries);
}

bool IdentityTable::isChecked(const SegmentKey& key, const FileGeneration& file,
                              const BootId& boot) {
  return boot != BootId{} && read(checkedKey(key, file, boot)).has_value();
}

void IdentityTable::rememberChecked(const SegmentKey& key, const FileGeneration& file,
                                    const BootId& boot) {
  if (boot != BootId{}) write(checkedKey(key, file, boot), {{}, base::wallClock()});
}

void IdentityTable::forgetOlderThan(int64_t seconds) {
  if (!writable_) return;
  const base::FileSizeSignalOff signalOff;
  const std::lock_guard lock(mutex_);
  forgetLatestEntries(folder_);
  if (!open(true)) return;
  int code = 0;
  {
    // An entry from the future, left by a clock that went wrong, would otherwise stay for ever.
    const SqlStatement statement =
        prepareStatement(database_, "DELETE FROM entry1 WHERE time < ?1 OR time > ?2", code);
    if (code == SQLITE_OK) {
      constexpr int64_t kDay = int64_t{24} * 3600 * 1'000'000'000;
      const int64_t time = base::wallClock();
      sqlite3_bind_int64(statement.get(), 1, time - seconds * 1'000'000'000);
      sqlite3_bind_int64(statement.get(), 2, time + kDay);
      code = sqlite3_step(statement.get());
    }
  }
  discardIfBroken(code);
}

}  // namespace hearth::cache
