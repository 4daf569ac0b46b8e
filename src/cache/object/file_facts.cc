// SPDX-License-Identifier: Apache-2.0
#include "cache/object/file_facts.h"

#include <fcntl.h>
#include <linux/fsverity.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <list>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/format.h"
#include "base/mutex.h"
#include "cache/object/owned_file.h"

// Older headers lack these.
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x00004000U
#endif
#ifndef STATX_ATTR_VERITY
#define STATX_ATTR_VERITY 0x00100000
#endif
#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#define F_SEAL_SHRINK 0x0002
#define F_SEAL_WRITE 0x0008
#endif

namespace hearth::cache {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// Earlier times come from clocks that were never set: nothing that runs this is older than 2001.
constexpr int64_t kPlausible = int64_t{978'307'200} * kSecond;

// File systems whose kernels set the time of change at every change, by the machine's clock, to a
// fraction of a second. Most magic numbers are in linux/magic.h.
constexpr unsigned long kStamping[] = {
    EXT4_SUPER_MAGIC,  // also ext2 and ext3
    0x58465342,        // XFS
    BTRFS_SUPER_MAGIC,
    F2FS_SUPER_MAGIC,
    0xca451a4e,             // bcachefs
    0x2fc12fc1,             // ZFS
    OVERLAYFS_SUPER_MAGIC,  // shows the stamps of the layers below
    NILFS_SUPER_MAGIC,
    0x24051905,  // UBIFS
    0x3153464a,  // JFS
};

// File systems that show what a server says.
constexpr unsigned long kServers[] = {
    NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC,
    0x00c36400,  // Ceph
    AFS_SUPER_MAGIC, AFS_FS_MAGIC,
    0x0bd00bd0,  // Lustre
};

// File systems of images and media that need no block device of their own.
constexpr unsigned long kImages[] = {
    0xe0f5e1e2,  // EROFS
    0x7275,      // ROMFS
    SQUASHFS_MAGIC, CRAMFS_MAGIC, CRAMFS_MAGIC_WEND, JFFS2_SUPER_MAGIC,
};

// File systems whose attributes come from any program, or are never asked for again.
constexpr unsigned long kInvented[] = {FUSE_SUPER_MAGIC, V9FS_MAGIC};

// File systems in memory: writes through a mapping leave no trace.
constexpr unsigned long kMemory[] = {TMPFS_MAGIC, RAMFS_MAGIC, HUGETLBFS_MAGIC};

bool isOneOf(unsigned long system, std::span<const unsigned long> systems) {
  return std::ranges::find(systems, system) != systems.end();
}

// A file may claim any time; those beyond the year 2262 wrap.
int64_t nanoseconds(int64_t seconds, uint32_t rest) {
  return static_cast<int64_t>(static_cast<uint64_t>(seconds) * static_cast<uint64_t>(kSecond) +
                              rest);
}
int64_t nanoseconds(const statx_timestamp& time) {
  return nanoseconds(time.tv_sec, time.tv_nsec);
}

// Whether a running kernel's clock has set this time, rather than a builder of images, which uses
// whole seconds. A kernel's clock shows a whole second once in a billion times.
bool isKernelsTime(int64_t time) {
  return time >= kPlausible && time % kSecond != 0;
}

uint64_t diskSequenceOf(uint64_t device) {
  // A partition has the sequence number of its disk.
  for (const char* where : {"", "/.."}) {
    const auto file = base::Descriptor::open(
        base::formatText("/sys/dev/block/{}:{}{}/diskseq", gnu_dev_major(device),
                         gnu_dev_minor(device), where),
        O_RDONLY);
    if (!file) continue;
    char text[24];
    const ssize_t size = ::read(file->get(), text, sizeof text);
    uint64_t number = 0;
    if (size > 0 && std::from_chars(text, text + size, number).ec == std::errc()) return number;
  }
  return 0;
}

std::optional<base::Sha256Digest> verityOf(int fd) {
  constexpr uint16_t kLongest = 64;
  alignas(fsverity_digest) std::array<uint8_t, sizeof(fsverity_digest) + kLongest> bytes{};
  auto* const measured = reinterpret_cast<fsverity_digest*>(bytes.data());
  measured->digest_size = kLongest;
  if (::ioctl(fd, FS_IOC_MEASURE_VERITY, measured) != 0 || measured->digest_size > kLongest)
    return std::nullopt;
  base::Sha256 hash;
  hash.update(bytes.data(), sizeof *measured + measured->digest_size);
  return hash.finish();
}

void takeStamps(const struct statx& status, FileFacts& facts) {
  facts.isRegular = S_ISREG(status.stx_mode);
  facts.links = status.stx_nlink;
  facts.device = gnu_dev_makedev(status.stx_dev_major, status.stx_dev_minor);
  facts.inode = status.stx_ino;
  facts.size = status.stx_size;
  facts.modified = nanoseconds(status.stx_mtime);
  facts.changed = nanoseconds(status.stx_ctime);
  if ((status.stx_mask & STATX_BTIME) != 0) facts.born = nanoseconds(status.stx_btime);
  if ((status.stx_mask & STATX_MNT_ID_UNIQUE) != 0) facts.mounting = status.stx_mnt_id;
}

void takeStamps(const struct stat& status, FileFacts& facts) {
  const auto time = [](const timespec& stamp) {
    return nanoseconds(stamp.tv_sec, static_cast<uint32_t>(stamp.tv_nsec));
  };
  facts.isRegular = S_ISREG(status.st_mode);
  facts.links = status.st_nlink;
  facts.device = status.st_dev;
  facts.inode = status.st_ino;
  facts.size = static_cast<uint64_t>(status.st_size);
  facts.modified = time(status.st_mtim);
  facts.changed = time(status.st_ctim);
}

#ifdef HEARTH_TEST_HOOKS
// Atomic: a forked child might find a mutex locked.
std::atomic<const std::function<void(int, FileFacts&)>*> change = nullptr;
#endif

// Whether a change made now would alter the file's time of change.
bool isStamped(const FileFacts& facts) {
  if (!isOneOf(facts.system, kStamping) || !isKernelsTime(facts.changed)) return false;
  // The layer below may be an image. Its times may have fractions of seconds, but it has no birth
  // times.
  return facts.system != OVERLAYFS_SUPER_MAGIC || isKernelsTime(facts.born);
}

bool isFromImage(const FileFacts& facts) {
  return !isOneOf(facts.system, kMemory) && !isOneOf(facts.system, kServers) &&
         !isOneOf(facts.system, kInvented) && !isStamped(facts) &&
         (gnu_dev_major(facts.device) != 0 || isOneOf(facts.system, kImages) ||
          isOneOf(facts.system, kStamping));
}

unsigned long systemOf(int fd) {
  struct statfs system;
  return ::fstatfs(fd, &system) == 0 ? static_cast<unsigned long>(system.f_type) : 0;
}

// The file system that was mounted last time. A mounting is of one file system as long as it lasts,
// and no later one has its number.
struct Mounted {
  uint64_t mounting = 0;
  unsigned long system = 0;
};
constinit base::Mutex mountedMutex;
constinit Mounted lastMounted;  // guarded by mountedMutex

// The type of the file system of an open file that is seen through this mounting. A start opens
// dozens of files of one store.
unsigned long systemOf(int fd, uint64_t mounting) {
  {
    const std::lock_guard lock(mountedMutex);
    if (mounting != 0 && lastMounted.mounting == mounting) return lastMounted.system;
  }
  const unsigned long system = systemOf(fd);
  if (mounting == 0 || system == 0) return system;
  const std::lock_guard lock(mountedMutex);
  lastMounted = {mounting, system};
  return system;
}

base::Sha256Digest mountingDigest(const FileFacts& facts) {
  base::Sha256 hash;
  hash.update(facts.boot);
  hash.update(&facts.mounting, sizeof facts.mounting);
  hash.update(&facts.diskSequence, sizeof facts.diskSequence);
  return hash.finish();
}

Result<OwnedFile> lookAt(int fd, const char* name, bool asksServer) {
  constexpr unsigned kMask = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID_UNIQUE;
  const bool isOpen = *name == '\0';
  const int flags = isOpen ? AT_EMPTY_PATH : AT_SYMLINK_NOFOLLOW;
  OwnedFile file;
  FileFacts& facts = file.facts;
  // Whether a server is to be asked has to be known first; and a named entry may be seen through
  // another mounting than its folder.
  const bool isSystemFirst = asksServer || !isOpen;
  if (isSystemFirst) facts.system = systemOf(fd);
  const bool isAsked = asksServer && isOneOf(facts.system, kServers);
  struct statx extended{};
  if (::statx(fd, name, flags | (isAsked ? AT_STATX_FORCE_SYNC : 0), kMask, &extended) == 0) {
    takeStamps(extended, facts);
    file.owner = extended.stx_uid;
    file.mode = extended.stx_mode;
    if (isOpen && (extended.stx_attributes & STATX_ATTR_VERITY) != 0) facts.verity = verityOf(fd);
  } else {
    // A seccomp filter may refuse statx.
    struct stat status;
    if ((errno != ENOSYS && errno != EPERM) || ::fstatat(fd, name, &status, flags) != 0)
      return std::unexpected(base::errnoError(errno, "Reading the identity of a file"));
    takeStamps(status, facts);
    file.owner = status.st_uid;
    file.mode = status.st_mode;
  }
  if (!isSystemFirst) facts.system = systemOf(fd, facts.mounting);
  if (isOpen && isOneOf(facts.system, kMemory)) {
    constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK;
    const int seals = ::fcntl(fd, F_GET_SEALS);
    facts.isSealed = seals >= 0 && (seals & kSeals) == kSeals;
  }
  if (isFromImage(facts)) {
    facts.boot = currentBootId();
    if (gnu_dev_major(facts.device) != 0) facts.diskSequence = diskSequenceOf(facts.device);
  }
#ifdef HEARTH_TEST_HOOKS
  if (const auto* const function = change.load()) (*function)(fd, facts);
#endif
  return file;
}

}  // namespace

Result<FileFacts> FileFacts::of(int fd, const char* name, bool asksServer) {
  HEARTH_ASSIGN(const OwnedFile file, lookAt(fd, name, asksServer));
  return file.facts;
}

Result<OwnedFile> OwnedFile::of(int fd) {
  return lookAt(fd, "", false);
}

ChangeProof proofOf(const FileFacts& facts) {
  if (!facts.isRegular) return ChangeProof::kNone;
  if (facts.isSealed) return ChangeProof::kSeal;
  if (facts.verity) return ChangeProof::kContent;
  if (facts.links == 0) return ChangeProof::kNone;
  if (isOneOf(facts.system, kServers))
    return isKernelsTime(facts.changed) ? ChangeProof::kServer : ChangeProof::kNone;
  if (isStamped(facts)) return ChangeProof::kStamps;
  return isFromImage(facts) && facts.mounting != 0 && facts.boot != BootId{}
             ? ChangeProof::kMounting
             : ChangeProof::kNone;
}

base::Sha256Digest scopeOf(const FileFacts& facts, ChangeProof proof) {
  if (proof == ChangeProof::kContent) return *facts.verity;
  return proof == ChangeProof::kMounting ? mountingDigest(facts) : base::Sha256Digest{};
}

uint64_t mountingNumber(const FileFacts& facts) {
  uint64_t number = 0;
  if (isFromImage(facts)) std::memcpy(&number, mountingDigest(facts).data(), sizeof number);
  return number;
}

uint64_t racyWindow(ChangeProof proof) {
  switch (proof) {
    case ChangeProof::kContent:
      return 0;
    case ChangeProof::kServer:
      // The clocks of two machines differ, and attributes are cached for up to a minute.
      return 120 * static_cast<uint64_t>(kSecond);
    default:
      // Some file systems stamp in steps of two seconds, and a large write is stamped when it
      // begins.
      return 2 * static_cast<uint64_t>(kSecond);
  }
}

#ifdef HEARTH_TEST_HOOKS
void changeFileFacts(std::function<void(int fd, FileFacts& facts)> function) {
  // Never destroyed: other threads may still be calling one.
  static std::mutex* const mutex = new std::mutex;
  static auto* const all = new std::list<std::function<void(int fd, FileFacts& facts)>>;
  const std::lock_guard lock(*mutex);
  if (!function) {
    change = nullptr;
    return;
  }
  all->push_back(std::move(function));
  change = &all->back();
}
#else
void changeFileFacts(std::function<void(int fd, FileFacts& facts)>) {}
#endif

}  // namespace hearth::cache
