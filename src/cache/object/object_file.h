// SPDX-License-Identifier: Apache-2.0
// How files of the store are opened, read, written and put in place.
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

// Makes a system call again as long as a signal interrupts it.
template <typename Call>
auto retried(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// What changes when anybody writes, replaces or renames a file.
struct FileGeneration {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t modified = 0;  // nanoseconds since 1970, as is `changed`
  int64_t changed = 0;
  uint64_t mounting = 0;  // mountingNumber(), where it was asked for
  bool operator==(const FileGeneration&) const = default;
  static FileGeneration of(const FileFacts& facts);
  // Of a file that this process has written, or for the numbers in it only.
  static FileGeneration of(const struct stat& status);
};

// Whether the file or folder belongs to the user or to root, and nobody else may write it.
bool isTrusted(const struct stat& status);

// Whether a file may be written in place: a regular and trusted one that has no other name. Under
// another one it may be any file of the user's, which somebody linked to where it is found. What is
// only read may have several: its bytes are checked.
bool mayBeWritten(const struct stat& status);
// The same for a database of SQLite and the files that it keeps beside; those missing may be.
bool mayBeDatabase(int folder, const std::string& name);
// Takes the names of a database's files away that are other names of files. These stay as they are.
void unlinkDatabase(int folder, const std::string& name);

struct ObjectFile {
  base::Descriptor descriptor;
  FileGeneration generation;
};

// Opens an existing object for reading, relative to `folder`. Never follows a link in the last
// component, never waits (FIFOs), and refuses all but trusted regular files: kAbsent, kForeign,
// kIoError.
StoreResult<ObjectFile> openObject(int folder, const std::string& path);

// Opens a file that is written in place, made (0600) where the flags say so; invalid unless it may
// be written. One that has other names is left to these and made anew.
base::Descriptor openTrusted(int folder, const char* name, int flags);

// Opens a folder of the store, creating it (0700) when asked to. Errors: kGone when it is missing
// and not to be made, kLink, kNotAFolder, kNotOwned, kNotPrivate, kReadOnly, kNoSpace, kIoError.
StoreResult<base::Descriptor> openFolder(int parent, const std::string& name, bool create);

// Makes the folders above `path` as the XDG rules want them, 0700. What is there may be a link.
// Errors: kReadOnly, kNoSpace, kIoError.
StoreStatus makeParents(const std::string& path);

// Reads or writes all bytes at `offset`. A file that ends early is kCorrupt.
StoreStatus readAt(int fd, void* data, size_t size, uint64_t offset);
StoreStatus writeAt(int fd, const void* data, size_t size, uint64_t offset);

// unlinkat that tries again when interrupted; a missing file is success.
StoreStatus removeFile(int folder, const std::string& name);

// Removes whatever is called `name`; a folder is moved into the folder `temporary`.
StoreStatus clearPlace(int folder, const std::string& name, int temporary);

// A file being written in the store's folder for temporary files, of mode 0400: objects are never
// written again. It holds a lock as long as it is
// open, so that garbage collection can tell it from what a killed process left. Unlinked when not
// put in place. Move-only; not thread-safe.
class TempObject {
 public:
  // Errors: kReadOnly, kNoSpace, kGone, kIoError.
  static StoreResult<TempObject> create(int folder);
  TempObject(TempObject&& other) noexcept;
  TempObject& operator=(TempObject&&) = delete;
  ~TempObject();

  int fd() const { return descriptor_.get(); }

  // Renames the file into place, over whatever object stands there; a folder planted there is
  // moved aside first.
  StoreStatus placeAt(int folder, const std::string& name);
  // Once in place: gives the descriptor away, with a shared lock in place of the own one.
  base::Descriptor intoShared();

 private:
  TempObject() = default;
  int folder_ = -1;   // of the store, outlives this
  std::string name_;  // empty once in place
  base::Descriptor descriptor_;
};

// Takes a shared lock for as long as a duplicate of the descriptor is open; best effort.
void lockShared(int fd);

// Whether a process has a lock on the file (shared or exclusive, by open file description).
bool isLocked(int fd);

}  // namespace hearth::cache
