// SPDX-License-Identifier: Apache-2.0
// How files of the store are opened, read, written and renamed into place.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/descriptor.h"
#include "cache/object/file_facts.h"
#include "cache/object/store_failure.h"

namespace hearth::cache {

// Repeats a system call while signals interrupt it.
template <typename Call>
auto retried(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// Changes whenever the file is written, replaced or renamed.
struct FileGeneration {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t modified = 0;  // nanoseconds since 1970, as is `changed`
  int64_t changed = 0;
  uint64_t mounting = 0;  // mountingNumber(); 0 when made from a `struct stat`
  bool operator==(const FileGeneration&) const = default;
  static FileGeneration of(const FileFacts& facts);
  // For files that this process has written, or where only the numbers in `stat` matter.
  static FileGeneration of(const struct stat& status);
};

// Whether the file or folder belongs to the user or to root, and nobody else may write to it.
bool isTrusted(const struct stat& status);

// Whether a file may be written in place: it must be regular, trusted, and have no other name. A
// file with another name may be any file of the user's that somebody linked into the store. A file
// that is only read may have several names, since its bytes are checked.
bool mayBeWritten(const struct stat& status);
// The same for an SQLite database and the files beside it, each of which may be missing.
bool mayBeDatabase(int folder, const std::string& name);
// Unlinks those names of a database that are hard links to other files. The files themselves stay.
void unlinkDatabase(int folder, const std::string& name);

struct ObjectFile {
  base::Descriptor descriptor;
  FileGeneration generation;
};

// Opens an existing object for reading, relative to `folder`. Never follows a link in the last
// component, never waits (FIFOs), and refuses all but trusted regular files: kAbsent, kForeign,
// kIoError.
StoreResult<ObjectFile> openObject(int folder, const std::string& path);

// Opens a file that is written in place, creating it (0600) if `flags` say so. Invalid unless
// mayBeWritten(). With O_CREAT, a name that is a hard link to another file is unlinked and the file
// created anew.
base::Descriptor openTrusted(int folder, const char* name, int flags);

// Opens a folder of the store, and creates it (0700) if `create`. Errors: kGone when it is missing
// and not to be created, kLink, kNotAFolder, kNotOwned, kNotPrivate, kReadOnly, kNoSpace, kIoError.
StoreResult<base::Descriptor> openFolder(int parent, const std::string& name, bool create);

// Creates the missing folders above `path`, 0700 as the XDG rules want. Existing ones may be
// symbolic links. Errors: kReadOnly, kNoSpace, kIoError.
StoreStatus makeParents(const std::string& path);

// Read or write all `size` bytes at `offset`. kCorrupt when the file ends early.
StoreStatus readAt(int fd, void* data, size_t size, uint64_t offset);
StoreStatus writeAt(int fd, const void* data, size_t size, uint64_t offset);

// unlinkat, repeated when interrupted. A missing file counts as removed.
StoreStatus removeFile(int folder, const std::string& name);

// Removes the entry `name`; a folder is moved into the folder `temporary` instead.
StoreStatus clearPlace(int folder, const std::string& name, int temporary);

// A file that is being written in the store's folder for temporary files. Its mode is 0400, since
// objects are never written again. It is locked while it is open, so that garbage collection can
// tell it from what a killed process left. Unlinked unless it was put in place. Move-only; not
// thread-safe.
class TempObject {
 public:
  // Errors: kReadOnly, kNoSpace, kGone, kIoError.
  static StoreResult<TempObject> create(int folder);
  TempObject(TempObject&& other) noexcept;
  TempObject& operator=(TempObject&&) = delete;
  ~TempObject();

  int fd() const { return descriptor_.get(); }

  // Renames the file to `name`, replacing an object there. A folder planted there is moved aside
  // first.
  StoreStatus placeAt(int folder, const std::string& name);
  // To be called once the file is in place: gives away the descriptor and turns its lock into a
  // shared one.
  base::Descriptor intoShared();

 private:
  TempObject() = default;
  int folder_ = -1;   // owned by the store, which outlives this
  std::string name_;  // empty once the file is in place
  base::Descriptor descriptor_;
};

// Takes a shared lock that lasts while any duplicate of the descriptor is open; best effort.
void lockShared(int fd);

// Whether any process holds a lock on the file (shared or exclusive, by open file description).
bool isLocked(int fd);

}  // namespace hearth::cache
