// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/mapped_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace hearth::delegate {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(ParseMappings, KeepsFilesThatNobodyCanWriteThrough) {
  const std::vector<FileMapping> found = parseMappings(
      "7f00-8f00 r--s 00002000 fe:01 1234                       /models/my model.tflite\n"
      "9000-a000 rw-s 00000000 fe:01 1234                       /models/my model.tflite\n"
      "a000-b000 r-xp 00000000 fe:01 1235                       /lib/libc.so.6 (deleted)\n"
      "b000-c000 r--p 00000000 00:00 0 \n"
      "c000-d000 r--p 00000000 00:00 0                          [vvar]\n"
      "d000-e000 ---p 00000000 fe:01 1236                       /none\n"
      "nonsense\n"
      "e000-f000 r--p 0000zz00 fe:01 1237                       /none\n"
      "f000-");
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].begin, 0x7f00u);
  EXPECT_EQ(found[0].end, 0x8f00u);
  EXPECT_EQ(found[0].offset, 0x2000u);
  EXPECT_EQ(found[0].device, "fe:01");
  EXPECT_EQ(found[0].inode, 1234u);
  EXPECT_EQ(found[0].path, "/models/my model.tflite");
}

// With and without answers of the kernel about single mappings.
class MappedFilesTest : public testing::TestWithParam<bool> {
 protected:
  static constexpr size_t kSize = 3 * 4096;

  MappedFilesTest() {
    folder_ = std::filesystem::temp_directory_path() / "hearth-mapped-XXXXXX";
    std::string name = folder_.string();
    folder_ = ::mkdtemp(name.data());
    write(path());
  }
  ~MappedFilesTest() override {
    if (data_ != nullptr) ::munmap(data_, kSize);
    std::filesystem::remove_all(folder_);
  }

  std::filesystem::path path() const { return folder_ / "model.tflite"; }
  static void write(const std::filesystem::path& path) {
    std::string bytes(kSize, 'a');
    std::memcpy(bytes.data() + 5000, "weights", 7);
    std::ofstream(path) << bytes;
  }
  const char* map(int protection, int flags) {
    const int file = ::open(path().c_str(), O_RDWR);
    data_ = ::mmap(nullptr, kSize, protection, flags, file, 0);
    ::close(file);
    return static_cast<const char*>(data_);
  }

  std::filesystem::path folder_;
  void* data_ = nullptr;
};

TEST_P(MappedFilesTest, FindsThePlaceInTheFile) {
  const char* const data = map(PROT_READ, MAP_SHARED);
  MappedFiles files(GetParam());
  const auto found = files.find(data + 5000, 7);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->offset, 5000u);
  EXPECT_EQ(found->length, 7u);
  EXPECT_EQ(std::memcmp(found->pool->data() + found->offset, "weights", 7), 0);
  EXPECT_NE(found->pool->data(), reinterpret_cast<const uint8_t*>(data));
  EXPECT_GE(found->pool->fd(), 0);
  const auto other = files.find(data, 1);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->pool, found->pool);
  EXPECT_THAT(files.paths(), testing::ElementsAre(path().string()));
}

TEST_P(MappedFilesTest, TellsTheFileAtAnAddress) {
  const char* const data = map(PROT_READ, MAP_SHARED);
  const std::string heap(10000, 'x');
  MappedFiles files(GetParam());
  EXPECT_EQ(files.fileAt(data), nullptr);  // nobody has asked for its file
  const auto found = files.find(data + 5000, 7);
  ASSERT_TRUE(found);
  EXPECT_FALSE(files.find(heap.data(), heap.size()));
  EXPECT_EQ(files.fileAt(data), found->pool.get());
  EXPECT_EQ(files.fileAt(data + kSize - 1), found->pool.get());
  EXPECT_EQ(files.fileAt(data + kSize), nullptr);
  EXPECT_EQ(files.fileAt(heap.data()), nullptr);
  EXPECT_EQ(files.fileAt(nullptr), nullptr);
}

TEST_P(MappedFilesTest, OtherMemoryIsNoFile) {
  const std::string heap(10000, 'x');
  MappedFiles files(GetParam());
  EXPECT_FALSE(files.find(heap.data(), heap.size()));
  EXPECT_FALSE(files.find(heap.data() + 1, 1));
  EXPECT_FALSE(files.find(nullptr, 1));
  const char* const data = map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
  MappedFiles afterwards(GetParam());
  EXPECT_FALSE(afterwards.find(data, 10));
  EXPECT_THAT(afterwards.paths(), IsEmpty());
}

TEST_P(MappedFilesTest, BytesBeyondTheFileAreNotFound) {
  const char* const data = map(PROT_READ, MAP_SHARED);
  std::filesystem::resize_file(path(), 4096);
  MappedFiles files(GetParam());
  EXPECT_TRUE(files.find(data, 4096));
  EXPECT_FALSE(files.find(data + 4096, 10));
  EXPECT_FALSE(files.find(data, kSize + 1));
}

TEST_P(MappedFilesTest, AFileThatWasReplacedOrRemovedIsNotTheOneThatIsMapped) {
  const char* const data = map(PROT_READ, MAP_SHARED);
  MappedFiles before(GetParam());
  ASSERT_TRUE(before.find(data, 10));
  write(folder_ / "new");
  std::filesystem::rename(folder_ / "new", path());
  MappedFiles files(GetParam());
  EXPECT_FALSE(files.find(data, 10));
  std::filesystem::remove(path());
  MappedFiles afterwards(GetParam());
  EXPECT_FALSE(afterwards.find(data, 10));
}

INSTANTIATE_TEST_SUITE_P(Ways, MappedFilesTest, testing::Bool());

}  // namespace
}  // namespace hearth::delegate
