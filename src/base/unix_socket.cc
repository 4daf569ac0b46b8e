// SPDX-License-Identifier: Apache-2.0
#include "base/unix_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <random>
#include <thread>
#include <utility>

#include "base/format.h"

namespace hearth::base {
namespace {

// As often as others may come first: each time a process has ended that listened.
constexpr int kTries = 16;

// A lock is held for a few calls of the kernel.
constexpr int kLockTries = 100;
constexpr std::chrono::milliseconds kLockPause{10};

// What stands before the last component.
std::string folderOf(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1);
}

// A path in the folder of `path` that no other process takes, and that is hardly longer.
std::string neighbourOf(const std::string& path) {
  std::random_device random;
  return folderOf(path) + formatText(".{:08x}", random());
}

// A path that is removed at the end.
class OwnPath {
 public:
  explicit OwnPath(std::string path) : path_(std::move(path)) {}
  OwnPath(const OwnPath&) = delete;
  OwnPath& operator=(const OwnPath&) = delete;
  ~OwnPath() { static_cast<void>(::unlink(path_.c_str())); }
  const char* get() const { return path_.c_str(); }

 private:
  const std::string path_;
};

// Whether somebody listens at a path that exists. Error: kIo, also where the answer is not known.
Result<bool> isListenedAt(const std::string& path, int type) {
  sockaddr_un address{};
  HEARTH_ASSIGN(const socklen_t size, socketAddress(path, &address));
  const Descriptor probe(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return std::unexpected(errnoError(errno, "Making a socket"));
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return true;
  // EAGAIN: its queue is full. EPROTOTYPE: the socket is of another type, and may be anybody's.
  if (errno == EAGAIN || errno == EPROTOTYPE) return true;
  if (errno == ECONNREFUSED || errno == ENOENT) return false;
  return std::unexpected(errnoError(errno, "Looking who listens on " + path));
}

Status checkIsSocket(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || S_ISSOCK(status.st_mode)) return {};
  return fail(ErrorCode::kBadData, "{} is there and is no socket. Choose another path.", path);
}

// Locks a folder against others that replace sockets in it. Without a lock where the folder cannot
// be read, or where somebody else keeps it locked: then two that start at once may both listen, and
// only the later one is found.
Descriptor lockFolder(const std::string& folder) {
  Descriptor locked(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; locked.valid() && i < kLockTries; ++i) {
    if (::flock(locked.get(), LOCK_EX | LOCK_NB) == 0) return locked;
    std::this_thread::sleep_for(kLockPause);
  }
  return {};
}

// Removes the socket at a path if nobody listens there, and returns whether somebody does.
Result<bool> removeUnlessListenedAt(const std::string& path, int type) {
  const Descriptor locked = lockFolder(folderOf(path) + ".");
  HEARTH_TRY(checkIsSocket(path));
  HEARTH_ASSIGN(const bool isListened, isListenedAt(path, type));
  if (!isListened && ::unlink(path.c_str()) != 0 && errno != ENOENT)
    return std::unexpected(errnoError(errno, "Removing the socket " + path));
  return isListened;
}

}  // namespace

Result<socklen_t> socketAddress(const std::string& path, sockaddr_un* address) {
  if (path.empty() || path.size() >= sizeof address->sun_path || path.contains('\0'))
    return fail(ErrorCode::kBadData, "The path of a socket has {} bytes, not 1 to {}.", path.size(),
                sizeof address->sun_path - 1);
  *address = {};
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path, path.data(), path.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
}

Result<Descriptor> listenAt(const std::string& path, const UnixSocket& kind) {
  sockaddr_un address{};
  HEARTH_TRY(socketAddress(path, &address));
  const std::string name = neighbourOf(path);
  HEARTH_ASSIGN(const socklen_t size, socketAddress(name, &address));
  Descriptor listening(::socket(AF_UNIX, kind.type | SOCK_CLOEXEC, 0));
  if (!listening.valid()) return std::unexpected(errnoError(errno, "Making a socket"));
  const auto failed = [&] {
    return std::unexpected(errnoError(errno, "Listening on " + path));
  };
  // Linux gives the file of a socket the mode of the socket.
  if (::fchmod(listening.get(), kind.mode) != 0 ||
      ::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return failed();
  const OwnPath own(name);
  if (::listen(listening.get(), kind.backlog) != 0) return failed();
  for (int i = 0; i < kTries; ++i) {
    if (::link(own.get(), path.c_str()) == 0) return listening;
    if (errno != EEXIST) return failed();
    HEARTH_ASSIGN(const bool isTaken, removeUnlessListenedAt(path, kind.type & ~SOCK_NONBLOCK));
    if (isTaken) break;
  }
  return fail(ErrorCode::kBadState, "Another process listens on {}.", path);
}

}  // namespace hearth::base
