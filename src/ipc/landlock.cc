// SPDX-License-Identifier: Apache-2.0
#include "ipc/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace hearth::ipc {
namespace {

// The versions that brought what is used here.
constexpr int kWithRename = 2;         // between folders
constexpr int kWithTruncate = 3;       // before it, a file that can be read can be emptied
constexpr int kWithNetwork = 4;        // TCP
constexpr int kWithDeviceControl = 5;  // ioctl on device nodes
constexpr int kWithScopes = 6;         // sockets in the abstract name space

constexpr uint64_t kFirstRights = LANDLOCK_ACCESS_FS_REFER - 1;  // all of the first version

constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kWrite = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |
                            LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR |
                            LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                            LANDLOCK_ACCESS_FS_REFER;
constexpr uint64_t kControl = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_IOCTL_DEV;
// Those that a file has; the kernel refuses the others for it.
constexpr uint64_t kOfFiles = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                              LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_IOCTL_DEV;

uint64_t rightsOf(int version) {
  uint64_t rights = kFirstRights;
  if (version >= kWithRename) rights |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= kWithTruncate) rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
  if (version >= kWithDeviceControl) rights |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
  return rights;
}

Status allow(int ruleset, const std::string& path, uint64_t rights) {
  HEARTH_ASSIGN(const base::Descriptor file, base::Descriptor::open(path, O_PATH));
  struct stat status;
  if (::fstat(file.get(), &status) != 0)
    return std::unexpected(base::errnoError(errno, "Looking at " + path));
  if (!S_ISDIR(status.st_mode)) rights &= kOfFiles;
  const landlock_path_beneath_attr rule{.allowed_access = rights, .parent_fd = file.get()};
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    return std::unexpected(base::errnoError(errno, "Allowing the use of " + path));
  return {};
}

}  // namespace

Landlock::Landlock(base::Descriptor ruleset, std::vector<std::string> gaps)
    : ruleset_(std::move(ruleset)), gaps_(std::move(gaps)) {}

int Landlock::version() {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version > 0 ? static_cast<int>(version) : 0;
}

Result<Landlock> Landlock::prepare(const FileRules& rules) {
  const int version = Landlock::version();
  if (version == 0)
    return fail(ErrorCode::kUnsupported,
                "The kernel has no Landlock, or it is disabled: files are bounded by the rights of "
                "the user only.");
  std::vector<std::string> gaps;
  if (version < kWithRename)
    gaps.push_back("The kernel's Landlock lets no file be moved between folders.");
  if (version < kWithTruncate)
    gaps.push_back("The kernel's Landlock does not keep files from being emptied.");
  if (version < kWithDeviceControl && !rules.devices.empty())
    gaps.push_back("The kernel's Landlock does not keep devices from being controlled.");

  const uint64_t rights = rightsOf(version);
  landlock_ruleset_attr attributes{.handled_access_fs = rights};
  // No rule allows any of it.
  if (version >= kWithNetwork)
    attributes.handled_access_net = LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP;
  if (version >= kWithScopes) attributes.scoped = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET;
  base::Descriptor ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
  if (!ruleset.valid())
    return std::unexpected(base::errnoError(errno, "Making a set of rules for files"));
  for (const std::string& path : rules.readWrite)
    HEARTH_TRY(allow(ruleset.get(), path, kWrite & rights));
  for (const std::string& path : rules.readOnly)
    HEARTH_TRY(allow(ruleset.get(), path, kRead & rights));
  for (const std::string& path : rules.devices)
    HEARTH_TRY(allow(ruleset.get(), path, kControl & rights));
  return Landlock(std::move(ruleset), std::move(gaps));
}

int Landlock::restrictThread(int fd) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
  return ::syscall(SYS_landlock_restrict_self, fd, 0) == 0 ? 0 : errno;
}

}  // namespace hearth::ipc
