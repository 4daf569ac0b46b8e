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

// The map from token to what a driver wrote into a client's cache files: only what it vouches for
// is interpreted. It lies in cache-map.sqlite, outlives kills, power failures and reboots, holds
// several contents for a token and a bounded number of all, of which the least recently used go
// first; another build's do not take the place of this one's. A damaged entry is forgotten, a
// damaged file made anew. Thread-safe. Not usable in a forked child (a new object is).
class MappingManager {
 public:
  enum class Use {
    kKeep,
    kLook,  // changes nothing: remembers and removes nothing, not even a damaged file
  };
  // The file lies in `folder`, which is made (0700) when first written to. An empty path knows and
  // takes nothing.
  explicit MappingManager(std::string folder, Use use = Use::kKeep);
  ~MappingManager();
  MappingManager(const MappingManager&) = delete;
  MappingManager& operator=(const MappingManager&) = delete;

  // That of this process, in hearth of $XDG_STATE_HOME, or of .local/state in $HOME.
  static std::shared_ptr<MappingManager> shared();
  // The same map for looking at it.
  static std::unique_ptr<MappingManager> forLooking();

  // The contents known for a token, most recent first. Errors: kIo when the map cannot be used.
  Result<std::vector<CachedContent>> find(const CacheOwner& owner);

  // One of those that find() gives, mostly the first, where that is known without a question to the
  // database, which takes longer than the rest of a small model's start.
  std::optional<CachedContent> findLatest(const CacheOwner& owner);

  // For people: all that is known under a token, whichever build and user it is of, and of contents
  // of these sizes, whichever token they are under; most recent first, a bounded number. kNotFound
  // when there is no map, kIo when it cannot be used.
  Result<std::vector<KnownContent>> findUnder(const base::Sha256Digest& token);
  Result<std::vector<KnownContent>> findSized(uint64_t modelBytes, uint64_t dataBytes);

  // Adds a content, durably; to be called before the files are written. kIo when that fails: what
  // is written then cannot be found again. `when`: nanoseconds since 1970, as the clock says where
  // it is not given.
  Status remember(const CacheOwner& owner, const CachedContent& content,
                  std::optional<int64_t> when = std::nullopt);

  // Notes that a content which find() or findLatest() gave last was used, at most once an hour.
  // Best effort.
  void touch(const CacheOwner& owner, const CachedContent& content);

  // Bounds, of contents for a token, of all of one build and user, and of builds.
  static constexpr int kMostPerToken = 8;
  static constexpr int kMostPerBuild = 2048;
  static constexpr int kMostBuilds = 16;

 private:
  Status open(bool create);
  // Of the file in the folder; none unless it may be believed.
  std::optional<FileGeneration> generationIn(int directory) const;
  void close();
  bool discardIfBroken(int code);
  // `condition` has a ? for each of what `bind` sets, from 1.
  Result<std::vector<KnownContent>> read(const std::string& condition,
                                         const std::function<void(sqlite3_stmt*)>& bind);
  Result<std::vector<KnownContent>> readOf(const CacheOwner& owner);
  // Before anything is written through a connection.
  Status setUpWriting();
  Status write(const CacheOwner& owner, const CachedContent& content, int64_t when);
  Status run(const std::string& statement);

  const std::string folder_;
  const Use use_;
  base::Mutex mutex_;
  base::Descriptor directory_;
  sqlite3* database_ = nullptr;
  bool isSetForWriting_ = false;
  // What find() or findLatest() gave last, and of which state of the file.
  std::vector<KnownContent> found_;
  std::optional<FileGeneration> foundIn_;
};

}  // namespace hearth::cache
