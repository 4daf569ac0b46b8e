// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/sha256.h"
#include "cache/compilation/known_content.h"
#include "cache/object/object_file.h"

struct sqlite3;
struct sqlite3_stmt;

namespace hearth::cache {

// The map from tokens to what a driver wrote into a client's cache files. Only contents that the
// map knows are interpreted. It lies in cache-map.sqlite and survives kills, power failures and
// reboots. It holds several contents for a token and a bounded number in all; the least recently
// used are evicted first, and other builds do not displace this build's. A damaged entry is
// forgotten, a damaged file created anew. Thread-safe. A forked child must make a new object.
class MappingManager {
 public:
  enum class Use {
    kKeep,
    kLook,  // read-only: remembers and removes nothing, not even a damaged file
  };
  // The file lies in `folder`, which is created (0700) by the first write. A map with an empty path
  // is empty and cannot be written.
  explicit MappingManager(std::string folder, Use use = Use::kKeep);
  ~MappingManager();
  MappingManager(const MappingManager&) = delete;
  MappingManager& operator=(const MappingManager&) = delete;

  // The map of this process, in the folder hearth of $XDG_STATE_HOME or of $HOME/.local/state.
  static std::shared_ptr<MappingManager> shared();
  // The same map, read-only.
  static std::unique_ptr<MappingManager> forLooking();

  // The folder of these two; empty where the environment names none.
  static std::string standardFolder();

  // The contents known for a token, most recent first. Error: kIo when the map cannot be used.
  Result<std::vector<CachedContent>> find(const CacheOwner& owner);

  // One of the contents that find() would return, mostly the first, if it is known without a query
  // of the database, which takes longer than the rest of a small model's start.
  std::optional<CachedContent> findLatest(const CacheOwner& owner);

  // For people: all entries of a token, of any build and user, and all entries with these sizes, of
  // any token. Most recent first; a bounded number. Errors: kNotFound when there is no map, kIo
  // when it cannot be used.
  Result<std::vector<KnownContent>> findUnder(const base::Sha256Digest& token);
  Result<std::vector<KnownContent>> findSized(uint64_t modelBytes, uint64_t dataBytes);

  // Adds a content, durably; to be called before the files are written. When it fails with kIo,
  // what is then written cannot be found again. `when` is in nanoseconds since 1970; the clock's
  // time by default.
  Status remember(const CacheOwner& owner, const CachedContent& content,
                  std::optional<int64_t> when = std::nullopt);

  // Marks a content as used, if the last find() or findLatest() returned it; at most once an hour.
  // Best effort.
  void touch(const CacheOwner& owner, const CachedContent& content);

  // Bounds: contents of a token, contents of one build and user, and builds.
  static constexpr int kMostPerToken = 8;
  static constexpr int kMostPerBuild = 2048;
  static constexpr int kMostBuilds = 16;

 private:
  Status open(bool create);
  // The generation of the database in `directory`; none unless the file may be believed.
  std::optional<FileGeneration> generationIn(int directory) const;
  void close();
  bool discardIfBroken(int code);
  // `condition` has a ? for each value that `bind` sets, counted from 1.
  Result<std::vector<KnownContent>> read(const std::string& condition,
                                         const std::function<void(sqlite3_stmt*)>& bind);
  Result<std::vector<KnownContent>> readOf(const CacheOwner& owner);
  // To be called before anything is written through a connection.
  Status setUpWriting();
  Status write(const CacheOwner& owner, const CachedContent& content, int64_t when);
  Status run(const std::string& statement);

  const std::string folder_;
  const Use use_;
  base::Mutex mutex_;
  base::Descriptor directory_;
  sqlite3* database_ = nullptr;
  bool isSetForWriting_ = false;
  // What the last find() or findLatest() returned, and from which state of the file.
  std::vector<KnownContent> found_;
  std::optional<FileGeneration> foundIn_;
};

}  // namespace hearth::cache
