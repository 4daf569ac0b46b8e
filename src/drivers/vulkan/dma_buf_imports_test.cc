// SPDX-License-Identifier: Apache-2.0
// Arguments in dma-bufs that the GPU reaches by their descriptors. Few machines for tests can make
// a dma-buf, so all tests but one have shared memory for one.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/dma-buf.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/vulkan/host_imports.h"
#include "drivers/vulkan/testing/fake_dma_bufs.h"
#include "drivers/vulkan/testing/imports_test.h"

namespace hearth::vulkan {
namespace {

using memory::Mapping;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class DmaBufImportsTest : public ImportsTest {
 protected:
  static constexpr uint64_t kSize = 4 * kPlace;

  void SetUp() override {
    ImportsTest::SetUp();
    if (open_.gpu == nullptr) return;
    if (!open_.gpu->facts().importsDmaBufs) GTEST_SKIP() << "It imports no dma-bufs.";
    fake_ = std::make_unique<FakeDmaBufs>(open_.gpu);
    prepare();
    fake_->takeCalls();
  }

  // The whole of a new one.
  memory::PoolRef make(Mapping::Access access = Mapping::Access::kReadWrite) {
    return *memory::Pool::ofFile(fake_->make(kSize).get(), 0, kSize, access);
  }
  // Runs with all arguments in it, and expects that they were copied, and that these calls were
  // made before.
  void expectCopied(const std::vector<std::string>& calls) {
    const memory::PoolRef pool = make();
    const int descriptors = fake_->descriptors();
    EXPECT_EQ(run(pool, 0, kPlace, 2 * kPlace), 3 * kBytes);
    std::vector<std::string> expected = calls;
    expected.emplace_back("submit");
    EXPECT_EQ(fake_->takeCalls(), expected);
    EXPECT_EQ(fake_->descriptors(), descriptors);
  }

  std::unique_ptr<FakeDmaBufs> fake_;
};

TEST_F(DmaBufImportsTest, InputsAreReadInPlace) {
  const memory::PoolRef pool = make();
  const int descriptors = fake_->descriptors();
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(run(pool, 0, kPlace, 2 * kPlace), kBytes);
    EXPECT_THAT(fake_->takeCalls(),
                ElementsAre("create buffer", "get properties", "import descriptor", "bind",
                            "record acquire", "record release", "end CPU access", "submit",
                            "start CPU access"));
    EXPECT_EQ(fake_->importedBytes, 2 * kPlace + kBytes);
    EXPECT_FALSE(fake_->wasDedicated);
    EXPECT_EQ(fake_->descriptors(), descriptors);
  }
}

TEST_F(DmaBufImportsTest, AnExecutionSeesWhatTheClientWritesBetweenRuns) {
  const memory::PoolRef pool = make();
  // As the client has it mapped.
  const memory::PoolRef client =
      *memory::Pool::ofFile(pool->fd(), 0, kSize, Mapping::Access::kReadWrite);
  auto execution =
      prepared_->createExecution({{in(pool, 0), in(pool, kPlace)}, {in(pool, 2 * kPlace)}});
  ASSERT_TRUE(execution) << execution.error().toString();
  for (int round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < kCount; ++i) expected_[i] = ++a_[i] - b_[i];
    write(client, 0, a_);
    write(client, kPlace, b_);
    EXPECT_TRUE((*execution)->compute({}).status);
    EXPECT_EQ(read(client, 2 * kPlace), expected_);
  }
  EXPECT_THAT(fake_->takeCalls(), Not(Contains("import pages")));
}

TEST_F(DmaBufImportsTest, AMemoryThatBeginsWithinADmaBuf) {
  const base::Descriptor whole = fake_->make(2 * kSize);
  const memory::PoolRef pool =
      *memory::Pool::ofFile(whole.get(), kPlace + 64, kSize - kPlace, Mapping::Access::kReadWrite);
  EXPECT_EQ(run(pool, kPlace - 64, 0, 2 * kPlace - 128), kBytes);
  EXPECT_EQ(fake_->importedBytes, 3 * kPlace - 64 + kBytes);
}

TEST_F(DmaBufImportsTest, PlacesThatAreNotAlignedAreCopiedByTheGpu) {
  EXPECT_EQ(run(make(), 4, kPlace + 8, 2 * kPlace + 12), 3 * kBytes);
  EXPECT_THAT(fake_->takeCalls(), Contains("import descriptor"));
}

TEST_F(DmaBufImportsTest, AGpuWithMemoryOfItsOwnCopies) {
  open_.gpu->factsForTest().type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  EXPECT_EQ(run(make(), 0, kPlace, 2 * kPlace), 3 * kBytes);
  EXPECT_THAT(fake_->takeCalls(), Contains("import descriptor"));
}

TEST_F(DmaBufImportsTest, OneThatIsOnlyReadIsImported) {
  const memory::PoolRef writable = make();
  write(writable, 0, a_);
  write(writable, kPlace, b_);
  const memory::PoolRef pool =
      *memory::Pool::ofFile(writable->fd(), 0, 2 * kPlace, Mapping::Access::kReadOnly);
  const memory::PoolRef output = *memory::Pool::anonymous(kPlace);
  auto execution = prepared_->createExecution({{in(pool, 0), in(pool, kPlace)}, {in(output, 0)}});
  ASSERT_TRUE(execution) << execution.error().toString();
  EXPECT_EQ((*execution)->compute({}).copiedBytes, kBytes);
  EXPECT_EQ(read(output, 0), expected_);
}

TEST_F(DmaBufImportsTest, MemoryIsDedicatedWhereTheDriverWantsThat) {
  open_.gpu->factsForTest().isDedicatedToDmaBuf = true;
  EXPECT_EQ(run(make(), 0, kPlace, 2 * kPlace), kBytes);
  EXPECT_TRUE(fake_->wasDedicated);
}

TEST_F(DmaBufImportsTest, DevicesOutsideOfVulkanNeedNoQueueFamilyOfTheirOwn) {
  open_.gpu->factsForTest().foreignFamily = VK_QUEUE_FAMILY_EXTERNAL;
  EXPECT_EQ(run(make(), 0, kPlace, 2 * kPlace), kBytes);
  EXPECT_THAT(fake_->takeCalls(), Contains("record acquire"));
}

TEST_F(DmaBufImportsTest, AnOutputOverItsInputIsRight) {
  EXPECT_EQ(run(make(), 0, kPlace, 64), 3 * kBytes);
  EXPECT_THAT(fake_->takeCalls(), ElementsAre("submit"));
}

TEST_F(DmaBufImportsTest, TwoMemoriesOfOneDmaBufAreRight) {
  prepareWithCopy();
  const memory::PoolRef whole = make();
  const memory::PoolRef end =
      *memory::Pool::ofFile(whole->fd(), 100, kSize - 100, Mapping::Access::kReadWrite);
  fake_->takeCalls();
  for (const uint64_t offset : {uint64_t{0}, kPlace - 104, 2 * kPlace - 100}) {
    runWithCopy(whole, in(end, offset));
    // Of two outputs the last one stays, as where all is copied.
    EXPECT_EQ(read(end, offset), offset < kPlace ? expected_ : a_);
    EXPECT_THAT(fake_->takeCalls(), Contains("import descriptor").Times(1));
  }
}

// As those are that one device has of another's memory, or udmabuf of one memfd.
TEST_F(DmaBufImportsTest, TwoDmaBufsOfOneMemoryAreRight) {
  prepareWithCopy();
  const memory::PoolRef first = make(), second = make();
  fake_->behindAll = first->fd();
  fake_->takeCalls();
  runWithCopy(first, in(second, 0));
  EXPECT_THAT(fake_->takeCalls(), Contains("import descriptor").Times(2));
  EXPECT_EQ(read(first, 0), expected_);
}

TEST_F(DmaBufImportsTest, LittleMemoryIsCopied) {
  open_.gpu->factsForTest().leastImport = 3 * kBytes + 1;
  expectCopied({});
}

TEST_F(DmaBufImportsTest, AGpuThatImportsNoneCopies) {
  open_.gpu->factsForTest().importsDmaBufs = false;
  expectCopied({});
}

TEST_F(DmaBufImportsTest, WhatTheDriverRefusesIsCopied) {
  const std::vector<std::string> calls = {"create buffer", "get properties", "import descriptor",
                                          "bind"};
  VkResult* const results[] = {&fake_->making, &fake_->asking, &fake_->taking, &fake_->binding};
  for (size_t i = 0; i < std::size(results); ++i)
    for (const VkResult result : {VK_ERROR_INVALID_EXTERNAL_HANDLE, VK_ERROR_OUT_OF_HOST_MEMORY}) {
      SCOPED_TRACE(calls[i]);
      *results[i] = result;
      expectCopied({calls.begin(), calls.begin() + static_cast<ptrdiff_t>(i) + 1});
      *results[i] = VK_SUCCESS;
    }
  // No other one is the worse, and neither is memory of the host.
  EXPECT_EQ(run(make(), 0, kPlace, 2 * kPlace), kBytes);
  const memory::PoolRef pages = *memory::Pool::anonymous(kSize);
  fake_->takeCalls();
  EXPECT_EQ(run(pages, 0, kPlace, 2 * kPlace), kBytes);
  EXPECT_THAT(fake_->takeCalls(), ElementsAre("import pages", "submit"));
}

TEST_F(DmaBufImportsTest, OneInNoTypeOfMemoryIsCopied) {
  fake_->memoryTypes = 0;
  expectCopied({"create buffer", "get properties"});
}

TEST_F(DmaBufImportsTest, OneThatIsLargerThanAnAllocationIsCopied) {
  open_.gpu->factsForTest().maxAllocation = kBytes * 2;
  expectCopied({"create buffer"});
}

TEST_F(DmaBufImportsTest, CachesThatCannotBeSyncedAreAnError) {
  const memory::PoolRef pool = make();
  auto execution =
      prepared_->createExecution({{in(pool, 0), in(pool, kPlace)}, {in(pool, 2 * kPlace)}});
  ASSERT_TRUE(execution) << execution.error().toString();
  fake_->syncing = fail(ErrorCode::kOpFailed, "It cannot be synced.");
  const hal::ExecutionResult result = (*execution)->compute({});
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kOpFailed);
  EXPECT_THAT(fake_->takeCalls(), Not(Contains("submit")));
  fake_->syncing = {};
  EXPECT_TRUE((*execution)->compute({}).status);
}

TEST_F(DmaBufImportsTest, OneIsFreedWithItsExecution) {
  {
    const memory::PoolRef pool = make();
    run(pool, 0, kPlace, 2 * kPlace);
  }
  EXPECT_EQ(fake_->descriptors(), 0);
}

TEST_F(DmaBufImportsTest, OnlyADmaBufCanBeSynced) {
  const base::Descriptor memory = fake_->make(kSize);
  const Status synced = syncDmaBuf(memory.get(), DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW);
  ASSERT_FALSE(synced);
  EXPECT_EQ(synced.error().code(), ErrorCode::kOpFailed);
}

// A true one, and nothing that is fake.
TEST_F(DmaBufImportsTest, ADmaBufOfTheKernel) {
  const base::Descriptor driver(::open("/dev/udmabuf", O_RDWR | O_CLOEXEC));
  if (!driver.valid()) GTEST_SKIP() << "There is no /dev/udmabuf to make a dma-buf with.";
  fake_.reset();
  const base::Descriptor pages(::memfd_create("pages", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(pages.get(), kSize), 0);
  ASSERT_EQ(::fcntl(pages.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  udmabuf_create wanted{};
  wanted.memfd = static_cast<uint32_t>(pages.get());
  wanted.flags = UDMABUF_FLAGS_CLOEXEC;
  wanted.size = kSize;
  const base::Descriptor made(::ioctl(driver.get(), UDMABUF_CREATE, &wanted));
  ASSERT_TRUE(made.valid());
  const memory::PoolRef pool =
      *memory::Pool::ofFile(made.get(), 0, kSize, Mapping::Access::kReadWrite);
  EXPECT_EQ(run(pool, 0, kPlace, 2 * kPlace), kBytes);
  EXPECT_EQ(run(pool, 4, kPlace + 8, 2 * kPlace + 12), 3 * kBytes);
}

}  // namespace
}  // namespace hearth::vulkan
