// SPDX-License-Identifier: Apache-2.0
#include "ipc/user_host.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/format.h"
#include "base/mutex.h"
#include "base/sha256.h"
#include "ipc/host.h"

namespace hearth::ipc {
namespace {

// As often as a host may end, or be started by somebody else, between two calls of the kernel.
constexpr int kTries = 3;
// Of the digest of what a host is started with.
constexpr size_t kDigits = 16;
constexpr size_t kMostNameBytes = 32;

Status checkFolder(const std::string& path) {
  HEARTH_ASSIGN(const base::Descriptor folder,
                base::Descriptor::open(path, O_RDONLY | O_DIRECTORY));
  struct stat status{};
  if (::fstat(folder.get(), &status) != 0)
    return std::unexpected(base::errnoError(errno, "Looking at the folder " + path));
  if (status.st_uid != ::geteuid())
    return fail(ErrorCode::kBadData, "The folder {} belongs to the user {}, not to {}.", path,
                status.st_uid, ::geteuid());
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return fail(ErrorCode::kBadData, "Others may use the folder {}.", path);
  return {};
}

// Adds a text so that no two sequences of texts give the same digest.
void add(base::Sha256& hash, std::string_view text) {
  const uint64_t size = text.size();
  hash.update(&size, sizeof size);
  hash.update(text.data(), text.size());
}

// Adds a file, by what changes when it is replaced or written to.
void addFile(base::Sha256& hash, const std::string& path) {
  struct stat status{};
  add(hash, std::filesystem::absolute(path).string());
  if (::stat(path.c_str(), &status) != 0) return;
  add(hash, base::formatText("{} {} {} {}.{}", status.st_dev, status.st_ino, status.st_size,
                             status.st_mtim.tv_sec, status.st_mtim.tv_nsec));
}

// Nobody but a process of this user may be behind the socket.
Status checkListener(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return std::unexpected(base::errnoError(errno, "Looking whose host listens"));
  if (peer.uid == ::geteuid()) return {};
  return fail(ErrorCode::kBadData, "The host is one of the user {}.", peer.uid);
}

// The file of what a host logs; not valid where it cannot be made.
base::Descriptor logFile(const std::string& socket) {
  const std::string path = std::filesystem::path(socket).replace_extension(".log");
  auto file = base::Descriptor::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW);
  return file ? *std::move(file) : base::Descriptor();
}

// Starts a host unless another process listens at the socket already.
Status startUserHost(const std::string& socket, const HostProgram& program) {
  static constinit base::Mutex mutex;
  pid_t starter = 0;
  {
    // A child that is forked meanwhile would keep a socket at which nobody accepts.
    const std::lock_guard lock(mutex);
    auto listening = listenAt(socket);
    if (!listening && listening.error().code() == ErrorCode::kBadState) return {};
    if (!listening) return std::unexpected(std::move(listening.error()));
    HEARTH_ASSIGN(starter, startHost(program, *listening, logFile(socket)));
  }
  waitForDetaching(starter);
  return {};
}

}  // namespace

Result<std::string> userHostFolder() {
  const std::string runtime = base::envFolder(base::Env::kRuntimeDir);
  if (runtime.empty()) return fail(ErrorCode::kNotFound, "XDG_RUNTIME_DIR does not name a folder.");
  HEARTH_TRY(checkFolder(runtime));
  std::string folder = (std::filesystem::path(runtime) / "hearth").string();
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    return std::unexpected(base::errnoError(errno, "Making the folder " + folder));
  HEARTH_TRY(checkFolder(folder));
  return folder;
}

std::string userHostSocket(const std::string& folder, const std::string& device,
                           const HostProgram& program) {
  base::Sha256 hash;
  add(hash, device);
  addFile(hash, program.program);
  for (const std::string& argument : program.arguments) add(hash, argument);
  for (const std::string& file : program.identity) addFile(hash, file);
  for (const std::string& variable : sharedVariables(program)) add(hash, variable);
  std::string name = device.substr(0, kMostNameBytes);
  std::ranges::replace_if(
      name, [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) == 0; }, '-');
  return (std::filesystem::path(folder) /
          base::formatText("{}-{}.sock", name, base::toHex(hash.finish()).substr(0, kDigits)))
      .string();
}

Result<HostConnection> joinUserHost(const std::string& socket, const HostProgram& program) {
  for (int i = 0;; ++i) {
    auto joined = joinHost(socket);
    if (joined) {
      HEARTH_TRY(checkListener(joined->get()));
      return HostConnection(*std::move(joined));
    }
    if (i == kTries) return std::unexpected(std::move(joined.error()));
    HEARTH_TRY(startUserHost(socket, program));
  }
}

void forgetUserHost(const std::string& socket) {
  static_cast<void>(::unlink(socket.c_str()));
}

}  // namespace hearth::ipc
