// SPDX-License-Identifier: Apache-2.0
#include "cache/object/file_facts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/descriptor.h"
#include "cache/identity/content_memory.h"
#include "cache/object/owned_file.h"
#include "cache/testing/store_test_util.h"

namespace hearth::cache {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kWhole = 1'700'000'000 * kSecond;  // a value of SOURCE_DATE_EPOCH

constexpr unsigned long kExt4 = 0xef53;
constexpr unsigned long kSquashfs = 0x73717368;
constexpr unsigned long kErofs = 0xe0f5e1e2;
constexpr unsigned long kIso9660 = 0x9660;
constexpr unsigned long kVfat = 0x4d44;
constexpr unsigned long kOverlay = 0x794c7630;
constexpr unsigned long kTmpfs = 0x01021994;
constexpr unsigned long kNfs = 0x6969;
constexpr unsigned long kSmb2 = 0xfe534d42;
constexpr unsigned long kFuse = 0x65735546;
constexpr unsigned long kPlan9 = 0x01021997;
constexpr unsigned long kNobodyKnows = 0x12345678;

// A file on a disk, written by a running kernel.
FileFacts written(unsigned long system) {
  return {.isRegular = true,
          .links = 1,
          .device = 0x803,
          .inode = 12,
          .size = 100,
          .modified = kWhole + 5,
          .changed = kWhole + 7,
          .born = kWhole + 3,
          .system = system,
          .mounting = 40,
          .diskSequence = 9,
          .boot = {1},
          .isSealed = false,
          .verity = std::nullopt};
}
// The same, written by the builder of an image.
FileFacts clamped(unsigned long system) {
  FileFacts facts = written(system);
  facts.modified = facts.changed = facts.born = kWhole;
  return facts;
}
FileFacts withoutDisk(FileFacts facts) {
  facts.device = 0x2d;
  return facts;
}

TEST(ChangeProof, StampsCountWhereARunningKernelHasSetThem) {
  EXPECT_EQ(proofOf(written(kExt4)), ChangeProof::kStamps);
  EXPECT_EQ(proofOf(withoutDisk(written(kOverlay))), ChangeProof::kStamps);
  // Stamps that are clamped, or that come from a clock that was never set.
  EXPECT_EQ(proofOf(clamped(kExt4)), ChangeProof::kMounting);
  EXPECT_EQ(proofOf(withoutDisk(clamped(kOverlay))), ChangeProof::kMounting);
  for (const int64_t time :
       {int64_t{0}, int64_t{77}, 3600 * kSecond + 5, -kSecond + 1, INT64_MIN}) {
    FileFacts unset = written(kExt4);
    unset.changed = time;
    EXPECT_EQ(proofOf(unset), ChangeProof::kMounting) << time;
  }
  // An image below an overlay, whose times have fractions of a second.
  FileFacts below = withoutDisk(written(kOverlay));
  below.born = 0;
  EXPECT_EQ(proofOf(below), ChangeProof::kMounting);
  // Any program can set the time of modification.
  FileFacts touched = written(kExt4);
  touched.modified = kWhole;
  EXPECT_EQ(proofOf(touched), ChangeProof::kStamps);
}

TEST(ChangeProof, ImagesAndUnknownDisksCountForOneMounting) {
  for (const unsigned long system : {kSquashfs, kErofs, kIso9660, kVfat, kNobodyKnows})
    for (const FileFacts& facts : {written(system), clamped(system)})
      EXPECT_EQ(proofOf(facts), ChangeProof::kMounting) << std::hex << system;
  EXPECT_EQ(proofOf(withoutDisk(clamped(kErofs))), ChangeProof::kMounting) << "mounted from a file";
  // Older kernels reuse mount numbers, and without /proc the boot is unknown.
  FileFacts facts = clamped(kSquashfs);
  facts.mounting = 0;
  EXPECT_EQ(proofOf(facts), ChangeProof::kNone);
  facts = clamped(kSquashfs);
  facts.boot = {};
  EXPECT_EQ(proofOf(facts), ChangeProof::kNone);
}

TEST(ChangeProof, FilesOfServersProveLittle) {
  for (const unsigned long system : {kNfs, kSmb2}) {
    EXPECT_EQ(proofOf(withoutDisk(written(system))), ChangeProof::kServer);
    EXPECT_EQ(proofOf(withoutDisk(clamped(system))), ChangeProof::kNone);
  }
  EXPECT_GT(racyWindow(ChangeProof::kServer), racyWindow(ChangeProof::kStamps));
  for (const unsigned long system : {kFuse, kPlan9, kNobodyKnows, kTmpfs})
    EXPECT_EQ(proofOf(withoutDisk(written(system))), ChangeProof::kNone) << std::hex << system;
  EXPECT_EQ(proofOf(written(kFuse)), ChangeProof::kNone) << "a disk that a program reads";
}

TEST(ChangeProof, AVerityDigestOutlivesEveryCopy) {
  FileFacts facts = clamped(kErofs);
  facts.verity = segmentKey(1).bytes;
  ASSERT_EQ(proofOf(facts), ChangeProof::kContent);
  EXPECT_EQ(scopeOf(facts, ChangeProof::kContent), segmentKey(1).bytes);
}

TEST(ChangeProof, AnImageIsAnotherInEveryBootMountingAndMedium) {
  const FileFacts first = clamped(kSquashfs);
  FileFacts others[3] = {first, first, first};
  others[0].boot = {2};
  others[1].mounting += 1;
  others[2].diskSequence += 1;
  for (const FileFacts& other : others) {
    EXPECT_NE(scopeOf(other, ChangeProof::kMounting), scopeOf(first, ChangeProof::kMounting));
    EXPECT_NE(mountingNumber(other), mountingNumber(first));
  }
  EXPECT_EQ(scopeOf(first, ChangeProof::kMounting), scopeOf(first, ChangeProof::kMounting));
  EXPECT_EQ(mountingNumber(written(kExt4)), 0u);
  EXPECT_EQ(mountingNumber(withoutDisk(written(kTmpfs))), 0u);
}

TEST(FileFacts, AreThoseOfTheSystem) {
  TempFolder folder;
  const fs::path path = folder.path() / "file";
  writeFile(path, payload(1, 100));
  const auto file = base::Descriptor::open(path, O_RDONLY);
  const base::Descriptor parent(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto facts = FileFacts::of(file->get());
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->size, 100u);
  EXPECT_EQ(facts->links, 1u);
  struct statx known{};
  ASSERT_EQ(::statx(AT_FDCWD, path.c_str(), 0, STATX_BTIME, &known), 0);
  const int64_t born = known.stx_btime.tv_sec * 1'000'000'000 + known.stx_btime.tv_nsec;
  EXPECT_EQ(facts->born, (known.stx_mask & STATX_BTIME) != 0 ? born : 0);
  EXPECT_NE(facts->system, 0u);
  const auto named = FileFacts::of(parent.get(), "file");
  ASSERT_TRUE(named);
  EXPECT_EQ(named->inode, facts->inode);
  EXPECT_EQ(named->changed, facts->changed);
  EXPECT_EQ(named->mounting, facts->mounting);
  EXPECT_FALSE(FileFacts::of(parent.get(), "nothing"));
  fs::remove(path);
  EXPECT_EQ(proofOf(*FileFacts::of(file->get())), ChangeProof::kNone) << "a file without a name";
}

TEST(FileFacts, TellTheOwnerAndTheFileSystemOfEachFile) {
  TempFolder folder;
  writeFile(folder.path() / "file", payload(1, 100));
  ASSERT_EQ(::chmod((folder.path() / "file").c_str(), 0640), 0);
  const auto file = base::Descriptor::open(folder.path() / "file", O_RDONLY);
  const base::Descriptor memory(::memfd_create("test", MFD_CLOEXEC));
  const auto process = base::Descriptor::open("/proc/self/status", O_RDONLY);
  // In turns, since what the last file was on is remembered.
  for (const int fd : {file->get(), memory.get(), process->get(), file->get(), file->get()}) {
    const auto known = OwnedFile::of(fd);
    ASSERT_TRUE(known);
    struct stat status;
    struct statfs system;
    ASSERT_EQ(::fstat(fd, &status), 0);
    ASSERT_EQ(::fstatfs(fd, &system), 0);
    EXPECT_EQ(known->facts.system, static_cast<unsigned long>(system.f_type));
    EXPECT_EQ(known->owner, status.st_uid);
    EXPECT_EQ(known->mode, status.st_mode);
  }
}

// Refuses statx to this process, as older containers do.
bool refuseStatx(int error) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof *program, program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(FileFacts, AreTheSameWhereStatxIsRefused) {
  if (!succeeded(inChild([] { return refuseStatx(EPERM) ? 0 : 1; })))
    GTEST_SKIP() << "no seccomp filters";
  TempFolder folder;
  const std::vector<const char*> names = {"one", "another"};
  std::vector<FileFacts> known;
  for (const char* const name : names) {
    writeFile(folder.path() / name, payload(1, 100 + known.size()));
    const auto file = base::Descriptor::open(folder.path() / name, O_RDONLY);
    known.push_back(*FileFacts::of(file->get()));
  }
  const base::Descriptor parent(::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (const int error : {EPERM, ENOSYS}) {
    SCOPED_TRACE(error);
    EXPECT_TRUE(succeeded(inChild([&] {
      EXPECT_TRUE(refuseStatx(error));
      for (size_t i = 0; i < names.size(); ++i) {
        struct stat status;
        EXPECT_EQ(::stat((folder.path() / names[i]).c_str(), &status), 0);
        const auto named = FileFacts::of(parent.get(), names[i]);
        const auto file = base::Descriptor::open(folder.path() / names[i], O_RDONLY);
        const auto opened = FileFacts::of(file->get());
        const auto owned = OwnedFile::of(file->get());
        EXPECT_TRUE(owned && owned->owner == status.st_uid && owned->mode == status.st_mode);
        for (const auto& facts : {named, opened}) {
          EXPECT_TRUE(facts && facts->isRegular);
          EXPECT_EQ(facts->links, known[i].links);
          EXPECT_EQ(facts->device, known[i].device);
          EXPECT_EQ(facts->inode, known[i].inode);
          EXPECT_EQ(facts->size, known[i].size);
          EXPECT_EQ(facts->modified, known[i].modified);
          EXPECT_EQ(facts->changed, known[i].changed);
          EXPECT_EQ(facts->born, 0) << "which stat does not tell";
        }
      }
      EXPECT_FALSE(FileFacts::of(parent.get(), "nothing"));
      return testing::Test::HasFailure() ? 1 : 0;
    })));
  }
}

TEST(FileFacts, MemoryTellsNothingUnlessItIsSealed) {
  const base::Descriptor memory(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(memory.get(), 4096), 0);
  EXPECT_EQ(proofOf(*FileFacts::of(memory.get())), ChangeProof::kNone);
  EXPECT_FALSE(ContentSource::of(memory.get(), 0, 4096).tellsChanges());
  ASSERT_EQ(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK), 0);
  EXPECT_EQ(proofOf(*FileFacts::of(memory.get())), ChangeProof::kSeal);
  const auto source = ContentSource::of(memory.get(), 0, 4096, true);
  EXPECT_TRUE(source.tellsChanges());
  EXPECT_TRUE(source.isUnchanged());
  EXPECT_EQ(ContentSource::of(memory.get(), 4000, 97).file(), nullptr) << "outside of the file";
}

}  // namespace
}  // namespace hearth::cache
