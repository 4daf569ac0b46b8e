// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "memory/constant_pool.h"
#include "memory/pool.h"

namespace hearth::memory {
namespace {

std::string writeFile(const std::string& name, size_t size) {
  const std::string path = testing::TempDir() + name;
  std::ofstream file(path, std::ios::binary);
  for (size_t i = 0; i < size; ++i) file.put(static_cast<char>(i));
  return path;
}

TEST(Mapping, PageBehindAFileOfWholePagesIsReadable) {
  const std::string path = writeFile("whole_page", 4096);
  auto pool = Pool::openFile(path);
  ASSERT_TRUE(pool) << pool.error().toString();
  const volatile uint8_t* end = (*pool)->data() + (*pool)->size();
  EXPECT_EQ(end[0], 0);
  EXPECT_EQ(end[63], 0);
}

TEST(Mapping, UnalignedOffsetShowsTheRightBytes) {
  const std::string path = writeFile("offset", 10000);
  auto fd = base::Descriptor::open(path, 0);
  ASSERT_TRUE(fd);
  auto mapping = Mapping::ofFile(fd->get(), 4099, 100, Mapping::Access::kReadOnly);
  ASSERT_TRUE(mapping);
  EXPECT_EQ(mapping->data()[0], static_cast<uint8_t>(4099));
  EXPECT_EQ(mapping->data()[99], static_cast<uint8_t>(4198));
}

TEST(Mapping, RangeOutsideTheFileIsRefused) {
  const std::string path = writeFile("short", 100);
  auto fd = base::Descriptor::open(path, 0);
  ASSERT_TRUE(fd);
  EXPECT_FALSE(Mapping::ofFile(fd->get(), 50, 51, Mapping::Access::kReadOnly));
  EXPECT_FALSE(Mapping::ofFile(fd->get(), 101, 1, Mapping::Access::kReadOnly));
  EXPECT_FALSE(Mapping::ofFile(fd->get(), UINT64_MAX, 2, Mapping::Access::kReadOnly));
  EXPECT_FALSE(Mapping::ofFile(fd->get(), 0, SIZE_MAX, Mapping::Access::kReadOnly));
}

TEST(Mapping, InsideAFileItsBytesFollow) {
  const std::string path = writeFile("inside", 4096 + Mapping::kReadableBehind);
  auto fd = base::Descriptor::open(path, 0);
  ASSERT_TRUE(fd);
  for (const size_t offset : {0u, 77u}) {
    auto mapping = Mapping::insideFile(fd->get(), offset, 4096 - offset);
    ASSERT_TRUE(mapping) << mapping.error().toString();
    EXPECT_EQ(mapping->size(), 4096 - offset);
    for (size_t i = 0; i < mapping->size() + Mapping::kReadableBehind; ++i)
      ASSERT_EQ(mapping->data()[i], static_cast<uint8_t>(offset + i)) << i;
  }
  EXPECT_FALSE(Mapping::insideFile(fd->get(), 0, 0));
  EXPECT_FALSE(Mapping::insideFile(fd->get(), 0, SIZE_MAX));
  EXPECT_FALSE(Mapping::insideFile(-1, 0, 4096));
}

TEST(Mapping, LargePartsAreAlignedForHugePages) {
  constexpr size_t kHugePage = size_t{2} << 20;
  const std::string path = writeFile("large", 0);
  ASSERT_EQ(::truncate(path.c_str(), 5 * kHugePage), 0);
  auto fd = base::Descriptor::open(path, 0);
  ASSERT_TRUE(fd);
  // Several mappings are made, since one may be aligned by chance.
  std::vector<Mapping> mappings;
  for (size_t i = 0; i < 4; ++i) {
    auto mapping = Mapping::insideFile(fd->get(), i * kHugePage, kHugePage + i * 4096);
    ASSERT_TRUE(mapping) << mapping.error().toString();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(mapping->data()) % kHugePage, 0u);
    mappings.push_back(std::move(*mapping));
  }
}

TEST(Mapping, HugeAnonymousMemoryIsRefusedNotWrapped) {
  EXPECT_FALSE(Mapping::anonymous(SIZE_MAX - 10));
}

// The flags that the kernel shows of the mapping at an address: "nh" where it gives no huge pages,
// "hg" where it was asked for them.
std::string flagsAt(const uint8_t* address) {
  std::ifstream maps("/proc/self/smaps");
  bool isThere = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin, end;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      isThere = begin <= reinterpret_cast<uintptr_t>(address) &&
                reinterpret_cast<uintptr_t>(address) < end;
    else if (isThere && line.starts_with("VmFlags:"))
      return line + " ";
  }
  return {};
}

TEST(Mapping, TheFirstBytesOfLargeMemoryMayHaveOrdinaryPages) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage"))
    GTEST_SKIP() << "The kernel has no huge pages.";
  constexpr size_t kHugePage = size_t{2} << 20;
  auto huge = Mapping::anonymous(4 * kHugePage);
  auto mixed = Mapping::anonymous(4 * kHugePage, kHugePage);
  auto ordinary = Mapping::anonymous(kHugePage, kHugePage);
  ASSERT_TRUE(huge && mixed && ordinary);
  EXPECT_THAT(flagsAt(huge->data()), testing::HasSubstr(" hg "));
  EXPECT_THAT(flagsAt(mixed->data()), testing::HasSubstr(" nh "));
  EXPECT_THAT(flagsAt(mixed->data() + kHugePage - 1), testing::HasSubstr(" nh "));
  EXPECT_THAT(flagsAt(mixed->data() + kHugePage), testing::HasSubstr(" hg "));
  EXPECT_THAT(flagsAt(ordinary->data() + kHugePage - 1), testing::HasSubstr(" nh "));
  // All of it is there.
  std::memset(mixed->data(), 1, mixed->size());
  EXPECT_EQ(mixed->data()[mixed->size() - 1], 1);
}

TEST(Pool, AnonymousIsZeroedAndWritable) {
  auto pool = Pool::anonymous(1000);
  ASSERT_TRUE(pool);
  EXPECT_EQ((*pool)->data()[999], 0);
  (*pool)->mutableData()[999] = 7;
  EXPECT_EQ((*pool)->data()[999], 7);
}

TEST(ConstantPool, NobodyCanWriteIt) {
  const auto pool = constantPool(5000, [](uint8_t* bytes) { std::memset(bytes, 7, 5000); });
  ASSERT_TRUE(pool) << pool.error().toString();
  EXPECT_EQ((*pool)->size(), 5000u);
  EXPECT_EQ((*pool)->data()[4999], 7);
  EXPECT_FALSE((*pool)->writable());
  const uint8_t other = 8;
  EXPECT_LT(::pwrite((*pool)->fd(), &other, 1, 0), 0);
  EXPECT_EQ(::mmap(nullptr, 5000, PROT_READ | PROT_WRITE, MAP_SHARED, (*pool)->fd(), 0),
            MAP_FAILED);
  const int again = ::open(("/proc/self/fd/" + std::to_string((*pool)->fd())).c_str(), O_RDWR);
  if (again >= 0) EXPECT_LT(::pwrite(again, &other, 1, 0), 0);
  ::close(again);
  EXPECT_EQ((*pool)->data()[0], 7);
}

TEST(Pool, ContainsNeverWraps) {
  auto pool = Pool::anonymous(1000);
  ASSERT_TRUE(pool);
  EXPECT_TRUE((*pool)->contains(0, 1000));
  EXPECT_FALSE((*pool)->contains(1, 1000));
  EXPECT_FALSE((*pool)->contains(UINT64_MAX, 2));
  EXPECT_FALSE((*pool)->contains(2, UINT64_MAX));
}

TEST(Pool, EmptyOrMissingFileIsAnError) {
  EXPECT_FALSE(Pool::openFile(writeFile("empty", 0)));
  auto missing = Pool::openFile(testing::TempDir() + "no_such_file");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
}

TEST(Pool, DirectoryIsAnError) {
  EXPECT_FALSE(Pool::openFile(testing::TempDir()));
}

}  // namespace
}  // namespace hearth::memory
