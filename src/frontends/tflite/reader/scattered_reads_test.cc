// SPDX-License-Identifier: Apache-2.0
// Opening a model reads its tables from the disk, but not the weights between them.
#include "frontends/tflite/reader/scattered_reads.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "frontends/tflite/model_file.h"
#include "frontends/tflite/testing/model_writer.h"
#include "memory/mapping.h"

namespace hearth::tflite {
namespace {

constexpr int kConstants = 24;
constexpr int32_t kElements = 1 << 18;

// Adds constants of 1 MiB to x, one after the other.
std::vector<uint8_t> largeModel() {
  ModelWriter model;
  const int32_t input = model.addTensor(schema::TensorType::FLOAT32, {kElements});
  int32_t last = input;
  for (int i = 0; i < kConstants; ++i) {
    const int32_t constant = model.addConstantBytes(
        schema::TensorType::FLOAT32, {kElements},
        std::vector<uint8_t>(kElements * sizeof(float), static_cast<uint8_t>(i + 1)));
    const int32_t sum = model.addTensor(schema::TensorType::FLOAT32, {kElements});
    model.addOperator(schema::BuiltinOperator::ADD, {last, constant}, {sum}, schema::AddOptionsT());
    last = sum;
  }
  model.setArguments({input}, {last});
  return model.write();
}

// Number of pages of a file that are in the page cache.
size_t residentPages(int fd) {
  const size_t size = base::Descriptor(::dup(fd)).size().value();
  const auto mapping = memory::Mapping::ofFile(fd, 0, size, memory::Mapping::Access::kReadOnly);
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((size + page - 1) / page);
  if (!mapping || ::mincore(mapping->data(), size, pages.data()) != 0) return SIZE_MAX;
  return static_cast<size_t>(std::ranges::count_if(pages, [](auto one) { return (one & 1) != 0; }));
}

TEST(ScatteredReadsTest, OpeningReadsLittleOfALargeModel) {
  const std::vector<uint8_t> bytes = largeModel();
  std::string path = std::filesystem::temp_directory_path() / "hearth-model-XXXXXX";
  const base::Descriptor file(::mkstemp(path.data()));
  ASSERT_TRUE(file.valid());
  ASSERT_EQ(::pwrite(file.get(), bytes.data(), bytes.size(), 0),
            static_cast<ssize_t>(bytes.size()));
  ASSERT_EQ(::fsync(file.get()), 0);
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  const bool isOnDisk = residentPages(file.get()) == 0;
  const auto opened = ModelFile::open(path);
  ::unlink(path.c_str());
  ASSERT_TRUE(opened) << opened.error().toString();
  const auto imported = (*opened)->importSubgraph(0);
  ASSERT_TRUE(imported) << imported.error().toString();
  if (!isOnDisk) GTEST_SKIP() << "The folder for temporary files is not on a disk.";
  const size_t all = bytes.size() / static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_LT(residentPages(file.get()), all / 50);
}

TEST(ScatteredReadsTest, BytesBecomeResidentAfterBegin) {
  constexpr size_t kSize = size_t{32} << 20;
  std::string path = std::filesystem::temp_directory_path() / "hearth-model-XXXXXX";
  const base::Descriptor file(::mkstemp(path.data()));
  ASSERT_TRUE(file.valid());
  ::unlink(path.c_str());
  const std::vector<uint8_t> bytes(kSize, 1);
  ASSERT_EQ(::pwrite(file.get(), bytes.data(), kSize, 0), static_cast<ssize_t>(kSize));
  ASSERT_EQ(::fsync(file.get()), 0);
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  const auto pool = memory::Pool::ofFile(file.get(), 0, kSize, memory::Mapping::Access::kReadOnly);
  ASSERT_TRUE(pool);
  if (residentPages(file.get()) != 0)
    GTEST_SKIP() << "The folder for temporary files is not on a disk.";
  const ScatteredReads reads(**pool);
  const uint8_t* const list = (*pool)->data() + kSize / 2 + 100;
  constexpr size_t kList = 100'000;
  EXPECT_FALSE(reads.isResident(list + kList / 2));
  reads.begin(list, kList);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!reads.isResident(list) || !reads.isResident(list + kList / 2) ||
         !reads.isResident(list + kList - 1)) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_FALSE(reads.isResident((*pool)->data()));
}

// Whether the kernel has been advised that the page of `byte` is read in random order.
bool isReadScattered(const void* byte) {
  const auto address = reinterpret_cast<uintptr_t>(byte);
  std::ifstream maps("/proc/self/smaps");
  bool isHere = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
      isHere = begin <= address && address < end;
    if (isHere && line.starts_with("VmFlags:")) return line.contains(" rr");
  }
  ADD_FAILURE() << "The kernel does not know the memory at " << byte;
  return false;
}

constexpr size_t kLarge = size_t{16} << 20;

TEST(ScatteredReadsTest, AFileIsReadInRandomOrderAsLongAsTheObjectExists) {
  std::string path = std::filesystem::temp_directory_path() / "hearth-model-XXXXXX";
  const base::Descriptor file(::mkstemp(path.data()));
  ASSERT_TRUE(file.valid());
  ::unlink(path.c_str());
  ASSERT_EQ(::ftruncate(file.get(), kLarge), 0);
  const auto pool = memory::Pool::ofFile(file.get(), 0, kLarge, memory::Mapping::Access::kReadOnly);
  ASSERT_TRUE(pool);
  const uint8_t* const middle = (*pool)->data() + kLarge / 2;
  EXPECT_FALSE(isReadScattered(middle));
  {
    const ScatteredReads reads(**pool);
    EXPECT_TRUE(isReadScattered(middle));
  }
  EXPECT_FALSE(isReadScattered(middle));
}

TEST(ScatteredReadsTest, MemoryThatIsNotOfAFileIsNotAffected) {
  const std::vector<uint8_t> bytes(kLarge, 7);
  const memory::PoolRef lent = memory::Pool::borrowed(bytes.data(), bytes.size());
  const memory::PoolRef own = memory::Pool::anonymous(kLarge).value();
  const ScatteredReads one(*lent);
  const ScatteredReads two(*own);
  EXPECT_FALSE(isReadScattered(bytes.data() + kLarge / 2));
  EXPECT_FALSE(isReadScattered(own->data() + kLarge / 2));
  // Memory that is not of a file is always resident.
  EXPECT_TRUE(one.isResident(bytes.data()));
  EXPECT_TRUE(two.isResident(own->data()));
}

}  // namespace
}  // namespace hearth::tflite
