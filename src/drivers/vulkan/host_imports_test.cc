// SPDX-License-Identifier: Apache-2.0
// Arguments in memories of the client that the GPU reaches itself.
#include "drivers/vulkan/host_imports.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <utility>

#include "drivers/vulkan/testing/imports_test.h"
#include "memory/pool.h"

namespace hearth::vulkan {
namespace {

int imports = 0;
PFN_vkAllocateMemory allocate = nullptr;
bool refuses = false;

VkResult VKAPI_CALL countImports(VkDevice device, const VkMemoryAllocateInfo* info,
                                 const VkAllocationCallbacks* callbacks, VkDeviceMemory* memory) {
  const auto* const next = static_cast<const VkBaseInStructure*>(info->pNext);
  if (next != nullptr && next->sType == VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT) {
    ++imports;
    if (refuses) return VK_ERROR_INVALID_EXTERNAL_HANDLE;
  }
  return allocate(device, info, callbacks, memory);
}

class HostImportsTest : public ImportsTest {
 protected:
  void SetUp() override {
    ImportsTest::SetUp();
    if (open_.gpu == nullptr) return;
    if (open_.gpu->facts().hostAlignment == 0) GTEST_SKIP() << "It takes no memory of the host.";
    allocate = std::exchange(open_.gpu->functionsForTest().vkAllocateMemory, countImports);
    imports = 0;
    refuses = false;
    prepare();
  }
};

TEST_F(HostImportsTest, InputsAreReadInPlace) {
  const memory::PoolRef pool = *memory::Pool::anonymous(3 * kPlace);
  EXPECT_EQ(run(pool, 0, kPlace, 2 * kPlace), kBytes);
  EXPECT_EQ(imports, 1);
  // Another memory, by the same commands.
  const memory::PoolRef other = *memory::Pool::anonymous(3 * kPlace + 90);
  EXPECT_EQ(run(other, 2 * kPlace, kPlace, 90), kBytes);
  EXPECT_EQ(imports, 2);
}

TEST_F(HostImportsTest, AGpuWithMemoryOfItsOwnCopies) {
  open_.gpu->factsForTest().type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  const memory::PoolRef pool = *memory::Pool::anonymous(3 * kPlace);
  EXPECT_EQ(run(pool, 0, kPlace, 2 * kPlace), 3 * kBytes);
  EXPECT_EQ(imports, 1);
}

TEST_F(HostImportsTest, PlacesThatAreNotAlignedAreCopied) {
  const memory::PoolRef pool = *memory::Pool::anonymous(4 * kPlace);
  EXPECT_EQ(run(pool, 4, kPlace + 8, 2 * kPlace + 12), 3 * kBytes);
  EXPECT_EQ(imports, 1);
}

TEST_F(HostImportsTest, AnOutputOverItsInputIsRight) {
  const memory::PoolRef pool = *memory::Pool::anonymous(2 * kPlace);
  EXPECT_EQ(run(pool, 0, kPlace, 64), 3 * kBytes);
  EXPECT_EQ(run(pool, 0, kPlace, kPlace), 3 * kBytes);
  EXPECT_EQ(imports, 0);
}

TEST_F(HostImportsTest, TwoMemoriesOfOneFileAreRight) {
  prepareWithCopy();
  const base::Descriptor file(::memfd_create("file", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 4 * kPlace), 0);
  const auto of = [&](uint64_t offset, size_t size) {
    return *memory::Pool::ofFile(file.get(), offset, size, memory::Mapping::Access::kReadWrite);
  };
  const memory::PoolRef whole = of(0, 4 * kPlace), end = of(100, 3 * kPlace);
  // What lies over nothing is imported all the same: both of the second memory's inputs, and the
  // copy.
  EXPECT_EQ(runWithCopy(whole, in(of(3 * kPlace, kPlace), 0)), 3 * kBytes);
  EXPECT_EQ(read(whole, 3 * kPlace), expected_);
  EXPECT_EQ(imports, 2);
  for (const uint64_t offset : {uint64_t{0}, kPlace - 104}) {
    runWithCopy(whole, in(end, offset));
    EXPECT_EQ(read(end, offset), expected_);
  }
  // Of two outputs the last one stays, as where all is copied.
  runWithCopy(whole, in(end, 2 * kPlace - 100));
}

TEST_F(HostImportsTest, MemoryThatIsOnlyReadIsCopied) {
  const base::Descriptor file(::memfd_create("read-only", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 2 * kPlace), 0);
  const memory::PoolRef writable =
      *memory::Pool::ofFile(file.get(), 0, 2 * kPlace, memory::Mapping::Access::kReadWrite);
  write(writable, 0, a_);
  write(writable, kPlace, b_);
  const memory::PoolRef pool =
      *memory::Pool::ofFile(file.get(), 0, 2 * kPlace, memory::Mapping::Access::kReadOnly);
  const memory::PoolRef output = *memory::Pool::anonymous(kPlace);
  auto execution = prepared_->createExecution({{in(pool, 0), in(pool, kPlace)}, {in(output, 0)}});
  ASSERT_TRUE(execution) << execution.error().toString();
  EXPECT_EQ((*execution)->compute({}).copiedBytes, 3 * kBytes);
  EXPECT_EQ(read(output, 0), expected_);
  EXPECT_EQ(imports, 1);
}

TEST_F(HostImportsTest, AMemoryThatTheDriverRefusesIsCopiedFromThenOn) {
  refuses = true;
  const memory::PoolRef pool = *memory::Pool::anonymous(3 * kPlace);
  EXPECT_EQ(run(pool, 0, kPlace, 2 * kPlace), 3 * kBytes);
  refuses = false;
  EXPECT_EQ(run(pool, 0, kPlace, 2 * kPlace), 3 * kBytes);
  EXPECT_EQ(imports, 1);
  // It may have been a matter of its pages.
  const memory::PoolRef other = *memory::Pool::anonymous(3 * kPlace);
  EXPECT_EQ(run(other, 0, kPlace, 2 * kPlace), kBytes);
  EXPECT_EQ(imports, 2);
}

TEST_F(HostImportsTest, ADriverThatRefusesSeveralMemoriesIsAskedForNoOther) {
  refuses = true;
  for (int i = 0; i < 5; ++i) {
    const memory::PoolRef pool = *memory::Pool::anonymous(3 * kPlace);
    EXPECT_EQ(run(pool, 0, kPlace, 2 * kPlace), 3 * kBytes);
  }
  EXPECT_EQ(imports, 3);
  EXPECT_FALSE(open_.gpu->importsHostMemory());
}

TEST_F(HostImportsTest, LittleMemoryIsCopied) {
  open_.gpu->factsForTest().leastImport = 3 * kBytes + 1;
  const memory::PoolRef pool = *memory::Pool::anonymous(3 * kPlace);
  EXPECT_EQ(run(pool, 0, kPlace, 2 * kPlace), 3 * kBytes);
  EXPECT_EQ(imports, 0);
}

TEST_F(HostImportsTest, AMemoryIsFreedWithItsExecution) {
  std::weak_ptr<const memory::Pool> gone;
  {
    const memory::PoolRef pool = *memory::Pool::anonymous(3 * kPlace);
    gone = pool;
    run(pool, 0, kPlace, 2 * kPlace);
  }
  EXPECT_TRUE(gone.expired());
  EXPECT_EQ(imports, 1);
}

TEST_F(HostImportsTest, AMemoryOfALostGpuStaysMapped) {
  std::weak_ptr<const memory::Pool> kept;
  {
    const memory::PoolRef pool = *memory::Pool::anonymous(3 * kPlace);
    kept = pool;
    auto execution =
        prepared_->createExecution({{in(pool, 0), in(pool, kPlace)}, {in(pool, 2 * kPlace)}});
    ASSERT_TRUE(execution);
    open_.gpu->functionsForTest().vkWaitForFences = [](VkDevice, uint32_t, const VkFence*, VkBool32,
                                                       uint64_t) {
      return VK_TIMEOUT;
    };
    EXPECT_FALSE((*execution)->compute({}).status);
  }
  EXPECT_FALSE(kept.expired());
}

// The functions of the GPU, of which one fails once, and then is as before.
VolkDeviceTable* table = nullptr;
VolkDeviceTable sound{};

template <auto kFunction>
void failOnce() {
  table->*kFunction = [](auto...) {
    *table = sound;
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  };
}

class FailingImportTest : public HostImportsTest, public testing::WithParamInterface<void (*)()> {};

TEST_P(FailingImportTest, LeavesMemoryThatIsCopied) {
  table = &open_.gpu->functionsForTest();
  sound = *table;
  GetParam()();
  const memory::PoolRef pool = *memory::Pool::anonymous(3 * kPlace);
  EXPECT_EQ(run(pool, 0, kPlace, 2 * kPlace), 3 * kBytes);
  EXPECT_EQ(std::memcmp(table, &sound, sizeof sound), 0) << "The function was not called.";
  const int before = imports;
  EXPECT_EQ(run(pool, 0, kPlace, 2 * kPlace), 3 * kBytes);
  EXPECT_EQ(imports, before);
}

INSTANTIATE_TEST_SUITE_P(
    Functions, FailingImportTest,
    testing::Values(failOnce<&VolkDeviceTable::vkCreateBuffer>,
                    failOnce<&VolkDeviceTable::vkGetMemoryHostPointerPropertiesEXT>,
                    failOnce<&VolkDeviceTable::vkAllocateMemory>,
                    failOnce<&VolkDeviceTable::vkBindBufferMemory>));

}  // namespace
}  // namespace hearth::vulkan
