// SPDX-License-Identifier: Apache-2.0
#include "cache/object/object_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "base/crash_point.h"
#include "base/fault.h"
#include "base/format.h"
#include "base/wall_clock.h"
#include "base/write_progress.h"
#include "cache/object/owned_file.h"

namespace hearth::cache {
namespace {

namespace sys = base::sys;

// Read-only, so that not even the user truncates by accident a file that processes have mapped.
constexpr mode_t kObjectMode = 0400;
// Large writes are split, so that waiting processes see progress.
constexpr size_t kMostWritten = size_t{8} << 20;

constexpr const char* kDatabaseFiles[] = {"", "-journal", "-wal", "-shm"};

// Unlinks `name` if it is one of several names of a file of ours; true when it no longer names that
// file.
bool unlinkIfShared(int folder, const std::string& name, const struct stat& file) {
  struct stat there;
  if (!S_ISREG(file.st_mode) || !isTrusted(file) || file.st_nlink < 2) return false;
  // Another process may have replaced it already.
  return ::fstatat(folder, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0 ||
         there.st_ino != file.st_ino || there.st_dev != file.st_dev ||
         removeFile(folder, name).has_value();
}

struct flock wholeFile(int type) {
  struct flock lock{};
  lock.l_type = static_cast<short>(type);
  lock.l_whence = SEEK_SET;
  return lock;
}

bool isTrusted(uint32_t owner, uint32_t mode) {
  return (owner == 0 || owner == ::geteuid()) && (mode & 022) == 0;
}

// A name that no other thread or process uses at this moment.
std::string freshName() {
  static std::atomic<uint64_t> count = 0;
  return base::formatText("{}-{:x}-{}", ::getpid(), base::wallClock(), ++count);
}

}  // namespace

FileGeneration FileGeneration::of(const struct stat& status) {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = static_cast<uint64_t>(status.st_size),
          .modified = base::toNanoseconds(status.st_mtim),
          .changed = base::toNanoseconds(status.st_ctim)};
}

FileGeneration FileGeneration::of(const FileFacts& facts) {
  return {.device = facts.device,
          .inode = facts.inode,
          .size = facts.size,
          .modified = facts.modified,
          .changed = facts.changed,
          .mounting = mountingNumber(facts)};
}

bool isTrusted(const struct stat& status) {
  return isTrusted(status.st_uid, status.st_mode);
}

bool mayBeWritten(const struct stat& status) {
  return S_ISREG(status.st_mode) && isTrusted(status) && status.st_nlink == 1;
}

bool mayBeDatabase(int folder, const std::string& name) {
  for (const char* suffix : kDatabaseFiles) {
    struct stat status;
    // A file that another process is just removing has no links left.
    if (::fstatat(folder, (name + suffix).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        status.st_nlink != 0 && !mayBeWritten(status))
      return false;
  }
  return true;
}

void unlinkDatabase(int folder, const std::string& name) {
  for (const char* suffix : kDatabaseFiles) {
    struct stat status;
    if (::fstatat(folder, (name + suffix).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
      unlinkIfShared(folder, name + suffix, status);
  }
}

StoreResult<ObjectFile> openObject(int folder, const std::string& path) {
  if (folder < 0 && folder != AT_FDCWD)
    return storeFail(StoreReason::kAbsent, "The store has no folder for {}.", path);
  ObjectFile object;
  object.descriptor.reset(retried([&] {
    return sys::openAt(folder, path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  }));
  if (!object.descriptor.valid()) {
    const int error = errno;
    if (error == ENOENT) return storeFail(StoreReason::kAbsent, "There is no object {}.", path);
    if (error == ELOOP || error == ENOTDIR || error == ENXIO || error == EACCES)
      return storeFail(StoreReason::kForeign, "The object {} is no file of the store.", path);
    return storeErrno(error, base::formatText("Opening the object {}", path));
  }
  const auto file = OwnedFile::of(object.descriptor.get());
  if (!file)
    return storeFail(StoreReason::kIoError, "The object {}: {}", path, file.error().message());
  if (!file->facts.isRegular || !isTrusted(file->owner, file->mode))
    return storeFail(StoreReason::kForeign,
                     "The object {} is no regular file that only the user or root may write.",
                     path);
  object.generation = FileGeneration::of(file->facts);
  return object;
}

base::Descriptor openTrusted(int folder, const char* name, int flags) {
  base::Descriptor file;
  for (int attempt = 0; attempt < 2; ++attempt) {
    file.reset(retried([&] {
      return sys::openAt(folder, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    }));
    struct stat status;
    if (!file.valid()) break;
    if (::fstat(file.get(), &status) == 0) {
      if (mayBeWritten(status)) break;
      if ((flags & O_CREAT) == 0 || !unlinkIfShared(folder, name, status)) attempt = 1;
    }
    file.reset();
  }
  return file;
}

StoreStatus makeParents(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    if (::access(parent.c_str(), F_OK) == 0) continue;
    if (retried([&] { return sys::mkdirAt(AT_FDCWD, parent.c_str(), 0700); }) != 0 &&
        errno != EEXIST)
      return storeErrno(errno, base::formatText("Making the folder {}", parent));
  }
  return {};
}

StoreResult<base::Descriptor> openFolder(int parent, const std::string& name, bool create) {
  const auto open = [&] {
    return retried([&] {
      return sys::openAt(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    });
  };
  base::Descriptor folder(open());
  if (!folder.valid() && errno == ENOENT && create) {
    if (retried([&] { return sys::mkdirAt(parent, name.c_str(), 0700); }) != 0 && errno != EEXIST)
      return storeErrno(errno, base::formatText("Making the folder {}", name));
    folder.reset(open());
  }
  struct stat status;
  if (!folder.valid()) {
    int error = errno;
    // With O_DIRECTORY a link is reported as "not a directory".
    if (error == ENOTDIR && ::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(status.st_mode))
      error = ELOOP;
    return storeErrno(error, base::formatText("Opening the folder {}", name));
  }
  if (::fstat(folder.get(), &status) != 0)
    return storeErrno(errno, base::formatText("Reading the state of the folder {}", name));
  if (status.st_uid != ::geteuid() && status.st_uid != 0)
    return storeFail(StoreReason::kNotOwned,
                     "The folder {} belongs to user {}, neither to user {} nor to root.", name,
                     status.st_uid, ::geteuid());
  if ((status.st_mode & 022) != 0)
    return storeFail(StoreReason::kNotPrivate, "The folder {} has mode {:o}: others may write it.",
                     name, status.st_mode & 07777);
  return folder;
}

StoreStatus readAt(int fd, void* data, size_t size, uint64_t offset) {
  auto* bytes = static_cast<uint8_t*>(data);
  while (size > 0) {
    const ssize_t count =
        retried([&] { return sys::pread(fd, bytes, size, static_cast<off_t>(offset)); });
    if (count < 0) return storeErrno(errno, base::formatText("Reading {} bytes", size));
    if (count == 0)
      return storeFail(StoreReason::kCorrupt, "The file ends {} bytes early, at {}.", size, offset);
    bytes += count;
    offset += static_cast<uint64_t>(count);
    size -= static_cast<size_t>(count);
  }
  return {};
}

StoreStatus writeAt(int fd, const void* data, size_t size, uint64_t offset) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  while (size > 0) {
    const size_t piece = std::min(size, kMostWritten);
    const ssize_t count =
        retried([&] { return sys::pwrite(fd, bytes, piece, static_cast<off_t>(offset)); });
    if (count < 0) return storeErrno(errno, base::formatText("Writing {} bytes", size));
    base::noteWrite();
    bytes += count;
    offset += static_cast<uint64_t>(count);
    size -= static_cast<size_t>(count);
  }
  return {};
}

StoreStatus removeFile(int folder, const std::string& name) {
  if (retried([&] { return sys::unlinkAt(folder, name.c_str(), 0); }) != 0 && errno != ENOENT)
    return storeErrno(errno, base::formatText("Removing {}", name));
  return {};
}

StoreStatus clearPlace(int folder, const std::string& name, int temporary) {
  if (StoreStatus removed = removeFile(folder, name); removed) return {};
  const std::string aside = freshName();
  if (retried([&] { return sys::renameAt(folder, name.c_str(), temporary, aside.c_str()); }) != 0)
    return storeErrno(errno, base::formatText("Moving {} aside", name));
  return {};
}

StoreResult<TempObject> TempObject::create(int folder) {
  TempObject object;
  object.folder_ = folder;
  const std::string name = freshName();
  object.descriptor_.reset(retried([&] {
    return sys::openAt(folder, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       kObjectMode);
  }));
  if (!object.descriptor_.valid()) return storeErrno(errno, "Creating a temporary file");
  object.name_ = name;
  HEARTH_CRASH_POINT("object.after_create");
  // Where locks do not work, collection may take the file for a leftover after a minute; nothing
  // worse.
  struct flock lock = wholeFile(F_WRLCK);
  ::fcntl(object.fd(), F_OFD_SETLK, &lock);
  return object;
}

TempObject::TempObject(TempObject&& other) noexcept
    : folder_(other.folder_),
      name_(std::exchange(other.name_, {})),
      descriptor_(std::move(other.descriptor_)) {}

TempObject::~TempObject() {
  if (!name_.empty()) (void)removeFile(folder_, name_);
}

StoreStatus TempObject::placeAt(int folder, const std::string& name) {
  HEARTH_CRASH_POINT("object.before_rename");
  const auto rename = [&] {
    return retried([&] { return sys::renameAt(folder_, name_.c_str(), folder, name.c_str()); });
  };
  int result = rename();
  if (result != 0 && (errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST)) {
    HEARTH_TRY(clearPlace(folder, name, folder_));
    result = rename();
  }
  if (result != 0) return storeErrno(errno, base::formatText("Putting {} in place", name));
  name_.clear();
  HEARTH_CRASH_POINT("object.after_rename");
  return {};
}

base::Descriptor TempObject::intoShared() {
  lockShared(fd());
  return std::move(descriptor_);
}

void lockShared(int fd) {
  struct flock lock = wholeFile(F_RDLCK);
  ::fcntl(fd, F_OFD_SETLK, &lock);
}

bool isLocked(int fd) {
  struct flock lock = wholeFile(F_WRLCK);
  return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace hearth::cache
