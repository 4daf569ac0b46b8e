// SPDX-License-Identifier: Apache-2.0
#include "cache/compilation/mapping_manager.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>

#include "base/env.h"
#include "base/fault.h"
#include "base/file_size_signal.h"
#include "base/fork_aware.h"
#include "base/fork_gate.h"
#include "base/format.h"
#include "base/immortal.h"
#include "base/log.h"
#include "base/wall_clock.h"
#include "cache/compilation/latest_contents.h"
#include "cache/object/sql_statement.h"
#include "cache/store/user_folder.h"

namespace hearth::cache {
namespace {

constexpr char kFile[] = "cache-map.sqlite";
// Long enough for the syncs of about a dozen other processes.
constexpr int kBusyMilliseconds = 2000;
constexpr int64_t kHour = int64_t{3600} * 1'000'000'000;

// Each write syncs before it returns. A lost entry would only cost a miss, but a file that a power
// failure damaged would take all its other entries along.
constexpr char kWriteSettings[] = "PRAGMA synchronous=FULL";
// For people. One token never has more entries.
constexpr char kLatest[] = " ORDER BY used DESC LIMIT 256";
constexpr char kTable[] =
    "CREATE TABLE IF NOT EXISTS content1(build BLOB, uid INTEGER, token BLOB, digest BLOB, "
    "model INTEGER, data INTEGER, used INTEGER, checksum BLOB, "
    "PRIMARY KEY(build, uid, token, digest)) WITHOUT ROWID";

void bindDigest(sqlite3_stmt* statement, int column, const base::Sha256Digest& digest) {
  sqlite3_bind_blob(statement, column, digest.data(), static_cast<int>(digest.size()),
                    SQLITE_STATIC);
}

bool readDigest(sqlite3_stmt* statement, int column, base::Sha256Digest* digest) {
  if (!isBlobOf(statement, column, digest->size())) return false;
  std::memcpy(digest->data(), sqlite3_column_blob(statement, column), digest->size());
  return true;
}

// A checksum over a whole entry: an entry whose bytes changed on the disk does not count.
base::Sha256Digest checksum(const CacheOwner& owner, const CachedContent& content, int64_t used) {
  base::Sha256 hash;
  hash.update("content", 7);
  hash.update(owner.build);
  hash.update(&owner.uid, sizeof owner.uid);
  hash.update(owner.token);
  hash.update(content.digest);
  hash.update(&content.modelBytes, sizeof content.modelBytes);
  hash.update(&content.dataBytes, sizeof content.dataBytes);
  hash.update(&used, sizeof used);
  return hash.finish();
}

// Uses no statements, since parsing them is a good part of a look-up's time.
void setUpReading(sqlite3* database) {
  sqlite3_busy_timeout(database, kBusyMilliseconds);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_int64 mapped = 0;
  sqlite3_file_control(database, "main", SQLITE_FCNTL_MMAP_SIZE, &mapped);
}

bool isDamage(int code) {
  return code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_FORMAT ||
         code == SQLITE_ERROR || code == SQLITE_SCHEMA;
}

}  // namespace

std::string MappingManager::standardFolder() {
  return userFolder(base::Env::kStateHome, ".local/state", "hearth");
}

MappingManager::MappingManager(std::string folder, Use use)
    : folder_(std::move(folder)), use_(use) {}

MappingManager::~MappingManager() {
  close();
}

std::shared_ptr<MappingManager> MappingManager::shared() {
  struct Shared {
    pid_t process = 0;
    std::string folder;
    std::shared_ptr<MappingManager> manager;
  };
  static constinit base::Immortal<Shared> known;
  const std::lock_guard lock(base::ForkAware::registryMutex());
  Shared* const shared = &known.get();
  const std::string folder = standardFolder();
  if (shared->manager == nullptr || shared->process != ::getpid() || shared->folder != folder) {
    // A connection must not be used in a forked child, not even to close it, so it is leaked.
    if (shared->process != ::getpid() && shared->manager != nullptr)
      new std::shared_ptr<MappingManager>(shared->manager);
    *shared = {::getpid(), folder, std::make_shared<MappingManager>(folder)};
  }
  return shared->manager;
}

std::unique_ptr<MappingManager> MappingManager::forLooking() {
  return std::make_unique<MappingManager>(standardFolder(), Use::kLook);
}

void MappingManager::close() {
  closeDatabase(database_);
  isSetForWriting_ = false;
  directory_.reset();
}

// Returns true when the file was unusable and has been removed.
bool MappingManager::discardIfBroken(int code) {
  if (!isDamage(code) || !directory_.valid() || use_ == Use::kLook) return false;
  base::logInfo("The file {}/{} is damaged and is made anew.", folder_, kFile);
  base::Descriptor directory = std::move(directory_);
  close();
  for (const char* suffix : {"", "-journal", "-wal", "-shm"})
    ::unlinkat(directory.get(), (std::string(kFile) + suffix).c_str(), 0);
  return true;
}

Status MappingManager::open(bool create) {
  const base::FileSizeSignalOff signalOff;
  struct stat status;
  if (database_ != nullptr) {
    // If the file was deleted or replaced, other processes write another one.
    struct stat mine;
    if (::fstatat(directory_.get(), kFile, &mine, AT_SYMLINK_NOFOLLOW) == 0 && mine.st_nlink == 1 &&
        ::fstatat(AT_FDCWD, (folder_ + '/' + kFile).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        status.st_ino == mine.st_ino)
      return {};
    close();
  }
  if (folder_.empty())
    return fail(ErrorCode::kIo, "XDG_STATE_HOME and HOME name no folder for the cache map.");
  if (create)
    if (auto made = makeParents(folder_); !made)
      return fail(ErrorCode::kIo, "The cache map cannot be made: {}", made.error().message);
  auto opened = openFolder(AT_FDCWD, folder_, create);
  if (!opened)
    return fail(opened.error().reason == StoreReason::kGone ? ErrorCode::kNotFound : ErrorCode::kIo,
                "There is no cache map: {}", opened.error().message);
  directory_ = std::move(*opened);
  const std::string path = folder_ + '/' + kFile;
  // A broken file is removed in the first attempt, so there is a second one.
  int code = SQLITE_CANTOPEN;
  for (int attempt = 0; attempt < 2 && directory_.valid(); ++attempt) {
    if (create) unlinkDatabase(directory_.get(), kFile);
    if (!mayBeDatabase(directory_.get(), kFile))
      return fail(ErrorCode::kIo,
                  "The cache map {} is no file, without other names, that only the user may write.",
                  path);
    if (::fstatat(directory_.get(), kFile, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno != ENOENT || !create)
        return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                    "There is no cache map {}.", path);
      // Created here, so that its mode is right and no link is followed.
      const base::Descriptor made(base::sys::openAt(
          directory_.get(), kFile, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    }
    code = sqlite3_open_v2(path.c_str(), &database_,
                           SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
                           nullptr);
    if (code == SQLITE_OK) setUpReading(database_);
    if (code == SQLITE_OK && create)
      code = sqlite3_exec(database_, kTable, nullptr, nullptr, nullptr);
    // A file that cannot be added to may be out of date, so it is not believed.
    if (code == SQLITE_OK && sqlite3_db_readonly(database_, "main") != 0) code = SQLITE_READONLY;
    if (code == SQLITE_OK) return {};
    const base::Descriptor again = base::Descriptor(::dup(directory_.get()));
    if (!discardIfBroken(code)) break;
    if (!create) return fail(ErrorCode::kIo, "The cache map {} was damaged.", path);
    directory_.reset(::dup(again.get()));
  }
  close();
  return fail(ErrorCode::kIo, "The cache map {} cannot be used: {}.", path, sqlite3_errstr(code));
}

Result<std::vector<KnownContent>> MappingManager::read(
    const std::string& condition, const std::function<void(sqlite3_stmt*)>& bind) {
  const base::FileSizeSignalOff signalOff;
  HEARTH_TRY(open(false));
  std::vector<KnownContent> rows;
  int code = 0;
  {
    const SqlStatement statement = prepareStatement(
        database_,
        base::formatText("SELECT digest, model, data, used, checksum, build, uid, token "
                         "FROM content1 WHERE {}",
                         condition),
        code);
    if (code == SQLITE_OK) {
      bind(statement.get());
      while ((code = sqlite3_step(statement.get())) == SQLITE_ROW) {
        KnownContent row;
        base::Sha256Digest check;
        row.content.modelBytes = static_cast<uint64_t>(sqlite3_column_int64(statement.get(), 1));
        row.content.dataBytes = static_cast<uint64_t>(sqlite3_column_int64(statement.get(), 2));
        row.used = sqlite3_column_int64(statement.get(), 3);
        row.owner.uid = static_cast<uid_t>(sqlite3_column_int64(statement.get(), 6));
        if (readDigest(statement.get(), 0, &row.content.digest) &&
            readDigest(statement.get(), 4, &check) &&
            readDigest(statement.get(), 5, &row.owner.build) &&
            readDigest(statement.get(), 7, &row.owner.token) &&
            check == checksum(row.owner, row.content, row.used))
          rows.push_back(row);
      }
    }
  }
  if (code == SQLITE_DONE) return rows;
  discardIfBroken(code);
  return fail(ErrorCode::kIo, "The cache map cannot be read: {}.", sqlite3_errstr(code));
}

Result<std::vector<KnownContent>> MappingManager::readOf(const CacheOwner& owner) {
  // Unordered, so that SQLite needs no sorter.
  HEARTH_ASSIGN(std::vector<KnownContent> rows,
                read("build = ? AND uid = ? AND token = ? LIMIT 256", [&](sqlite3_stmt* statement) {
                  bindDigest(statement, 1, owner.build);
                  sqlite3_bind_int64(statement, 2, owner.uid);
                  bindDigest(statement, 3, owner.token);
                }));
  std::ranges::sort(rows, std::ranges::greater(), &KnownContent::used);
  return rows;
}

std::optional<FileGeneration> MappingManager::generationIn(int directory) const {
  struct stat status;
  if (::fstatat(directory, kFile, &status, AT_SYMLINK_NOFOLLOW) != 0 || !mayBeWritten(status) ||
      ::faccessat(directory, kFile, W_OK, AT_EACCESS) != 0)
    return std::nullopt;
  const auto facts = FileFacts::of(directory, kFile);
  return facts ? std::optional(FileGeneration::of(*facts)) : std::nullopt;
}

std::optional<CachedContent> MappingManager::findLatest(const CacheOwner& owner) {
  const std::lock_guard lock(mutex_);
  if (folder_.empty()) return std::nullopt;
  const auto directory = openFolder(AT_FDCWD, folder_, false);
  if (!directory) return std::nullopt;
  const auto generation = generationIn(directory->get());
  if (!generation) return std::nullopt;
  const auto known = findLatestContent(directory->get(), *generation, owner);
  if (!known) return std::nullopt;
  found_ = {*known};
  foundIn_.reset();  // the record is already kept
  return known->content;
}

Result<std::vector<CachedContent>> MappingManager::find(const CacheOwner& owner) {
  const std::lock_guard lock(mutex_);
  HEARTH_TRY(open(false));
  // Taken before the query: an answer from a later state is then kept for the earlier one, and not
  // believed.
  foundIn_ = generationIn(directory_.get());
  HEARTH_ASSIGN(found_, readOf(owner));
  std::vector<CachedContent> contents;
  for (const KnownContent& row : found_) contents.push_back(row.content);
  return contents;
}

Result<std::vector<KnownContent>> MappingManager::findUnder(const base::Sha256Digest& token) {
  const std::lock_guard lock(mutex_);
  return read(base::formatText("token = ?{}", kLatest),
              [&](sqlite3_stmt* statement) { bindDigest(statement, 1, token); });
}

Result<std::vector<KnownContent>> MappingManager::findSized(uint64_t modelBytes,
                                                            uint64_t dataBytes) {
  const std::lock_guard lock(mutex_);
  return read(base::formatText("model = ? AND data = ?{}", kLatest), [&](sqlite3_stmt* statement) {
    sqlite3_bind_int64(statement, 1, static_cast<int64_t>(modelBytes));
    sqlite3_bind_int64(statement, 2, static_cast<int64_t>(dataBytes));
  });
}

Status MappingManager::run(const std::string& statement) {
  const base::FileSizeSignalOff signalOff;
  const int code = sqlite3_exec(database_, statement.c_str(), nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return {};
  discardIfBroken(code);
  return fail(ErrorCode::kIo, "The cache map cannot be written: {}.", sqlite3_errstr(code));
}

Status MappingManager::setUpWriting() {
  if (!isSetForWriting_) HEARTH_TRY(run(kWriteSettings));
  isSetForWriting_ = true;
  return {};
}

Status MappingManager::write(const CacheOwner& owner, const CachedContent& content, int64_t when) {
  const base::FileSizeSignalOff signalOff;
  int code = 0;
  {
    const SqlStatement statement = prepareStatement(
        database_, "INSERT OR REPLACE INTO content1 VALUES(?, ?, ?, ?, ?, ?, ?, ?)", code);
    if (code == SQLITE_OK) {
      const base::Sha256Digest check = checksum(owner, content, when);
      bindDigest(statement.get(), 1, owner.build);
      sqlite3_bind_int64(statement.get(), 2, owner.uid);
      bindDigest(statement.get(), 3, owner.token);
      bindDigest(statement.get(), 4, content.digest);
      sqlite3_bind_int64(statement.get(), 5, static_cast<int64_t>(content.modelBytes));
      sqlite3_bind_int64(statement.get(), 6, static_cast<int64_t>(content.dataBytes));
      sqlite3_bind_int64(statement.get(), 7, when);
      bindDigest(statement.get(), 8, check);
      code = sqlite3_step(statement.get());
    }
  }
  if (code == SQLITE_DONE) return {};
  discardIfBroken(code);
  return fail(ErrorCode::kIo, "The cache map cannot be written: {}.", sqlite3_errstr(code));
}

Status MappingManager::remember(const CacheOwner& owner, const CachedContent& content,
                                std::optional<int64_t> when) {
  const std::lock_guard lock(mutex_);
  if (use_ == Use::kLook)
    return fail(ErrorCode::kBadState, "The cache map is open for looking at it only.");
  HEARTH_TRY(open(true));
  HEARTH_TRY(setUpWriting());
  HEARTH_TRY(run("BEGIN IMMEDIATE"));
  // An open transaction would keep all other writers out.
  struct RollBack {
    sqlite3*& database;
    bool isDone = false;
    ~RollBack() {
      const base::FileSizeSignalOff signalOff;
      if (!isDone && database != nullptr)
        sqlite3_exec(database, "ROLLBACK", nullptr, nullptr, nullptr);
    }
  } rollBack{database_};
  const std::string mine =
      base::formatText("build = x'{}' AND uid = {}", base::toHex(owner.build), owner.uid);
  const std::string same = base::formatText("{} AND token = x'{}'", mine, base::toHex(owner.token));
  const int64_t time = when.value_or(base::wallClock());
  // A use in the future comes from a wrong clock and must not keep an entry for ever.
  const std::string known = base::formatText("CASE WHEN used > {} THEN 0 ELSE used END", time);
  // Deletes the oldest rows beyond `most`.
  const auto evict = [&](std::string_view columns, const std::string& rows, int most) {
    return run(base::formatText(
        "DELETE FROM content1 WHERE {1} AND ({0}) IN (SELECT {0} FROM content1 WHERE {1} ORDER BY "
        "{3} LIMIT MAX(0, (SELECT COUNT(*) FROM content1 WHERE {1}) - {2}))",
        columns, rows, most, known));
  };
  Status status = write(owner, content, time);
  if (status) status = evict("digest", same, kMostPerToken);
  if (status) status = evict("token, digest", mine, kMostPerBuild);
  if (status)
    status = run(base::formatText(
        "DELETE FROM content1 WHERE build NOT IN (SELECT build FROM content1 GROUP BY build ORDER "
        "BY MAX({}) DESC LIMIT {})",
        known, kMostBuilds));
  if (status) status = run("COMMIT");
  if (status) {
    rollBack.isDone = true;
    if (const auto generation = generationIn(directory_.get()))
      keepLatestContent(directory_.get(), *generation, {owner, content, time});
  }
  return status;
}

void MappingManager::touch(const CacheOwner& owner, const CachedContent& content) {
  const std::lock_guard lock(mutex_);
  if (use_ == Use::kLook) return;
  const auto isIt = [&](const KnownContent& row) {
    return row.owner == owner && row.content == content;
  };
  const auto isLongAgo = [](const KnownContent& row) {
    // A time in the future comes from a clock that was ahead.
    const int64_t time = base::wallClock();
    return row.used > time || time - row.used > kHour;
  };
  // The result of the last look-up mostly shows that there is nothing to do.
  const auto found = std::ranges::find_if(found_, isIt);
  if (found == found_.end()) return;
  if (isLongAgo(*found)) {
    const auto rows = readOf(owner);
    if (!rows) return;
    const auto row = std::ranges::find_if(*rows, isIt);
    if (row != rows->end() && isLongAgo(*row) && setUpWriting())
      (void)write(owner, content, base::wallClock());
  } else if (foundIn_) {
    keepLatestContent(directory_.get(), *foundIn_, *found);
  }
}

}  // namespace hearth::cache
