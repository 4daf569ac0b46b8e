// SPDX-License-Identifier: Apache-2.0
// Memories of programs for NNAPI that a GPU reaches itself: in this process, and through a host,
// which is a thread of this process. The GPU is Vulkan's implementation on the CPU, under the
// validation layer.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "android/hardware_buffer.h"
#include "drivers/vulkan/testing/fake_dma_bufs.h"
#include "drivers/vulkan/testing/test_gpu.h"
#include "drivers/vulkan/vulkan_device.h"
#include "frontends/nnapi/testing/memory_behaviour.h"
#include "ipc/hosted_device.h"
#include "ipc/testing/local_host.h"
#include "memory/pool.h"

namespace hearth::nnapi {
namespace {

using testing::Contains;
using testing::Not;

// Of one argument; two of them are enough to import the memory.
constexpr uint32_t kCount = (1 << 19) / sizeof(float);
constexpr size_t kBytes = kCount * sizeof(float);

class GpuMemoryTest : public MemoryBehaviour, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    MemoryBehaviour::SetUp();
    const std::shared_ptr<vulkan::Gpu> gpu = vulkan::openTestGpu();
    if (gpu == nullptr) return;
    fake_ = std::make_unique<vulkan::FakeDmaBufs>(gpu);
    facts_ = gpu->facts();
    auto pipelines = vulkan::Pipelines::create(gpu);
    ASSERT_TRUE(pipelines) << pipelines.error().toString();
    std::shared_ptr<hal::Device> device =
        vulkan::deviceOf(vulkan::validatedOptions(),
                         {gpu, *std::move(pipelines), std::make_shared<vulkan::DeviceTensors>(),
                          std::make_shared<vulkan::KnownAnswers>()});
    if (GetParam()) {
      host_ = std::make_unique<ipc::LocalHost>(std::move(device), ipc::HostOptions{});
      auto hosted = ipc::HostedDevice::create(vulkan::kVulkanDeviceName, host_->opener());
      ASSERT_TRUE(hosted) << hosted.error().toString();
      device = *std::move(hosted);
    }
    setDevicesForTest({std::move(device)});
  }
  void TearDown() override {
    MemoryBehaviour::TearDown();
    host_.reset();
    fake_.reset();
  }

  // Adds two tensors in a memory of three, which the client has mapped at `values`, and returns
  // what was done with memories meanwhile.
  std::vector<std::string> add(const ndk::MemoryHandle& memory, float* values) {
    const ndk::Compilation compilation =
        compileFor(addModel({kCount}), {ndk::findDevice(vulkan::kVulkanDeviceName)});
    for (uint32_t i = 0; i < kCount; ++i) {
      values[i] = static_cast<float>(i);
      values[kCount + i] = static_cast<float>(i % 5);
    }
    fake_->takeCalls();
    ndk::Execution execution(compilation);
    EXPECT_CODE(NO_ERROR, setInput(execution, 0, memory, 0, kBytes));
    EXPECT_CODE(NO_ERROR, setInput(execution, 1, memory, kBytes, kBytes));
    EXPECT_CODE(NO_ERROR, setOutput(execution, 0, memory, 2 * kBytes, kBytes));
    execution.compute();
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < kCount; ++i)
      wrong += values[2 * kCount + i] != static_cast<float>(i + i % 5);
    EXPECT_EQ(wrong, 0u);
    return fake_->takeCalls();
  }

  // Runs a model of two outputs, one of which is the first input, with the other output over that
  // input and over the second one, in the same memory of the file and in another one.
  void useOverlapping(const base::Descriptor& file) {
    ndk::Model model;
    const uint32_t a = model.operand(floats({kCount}));
    const uint32_t b = model.operand(floats({kCount}));
    const uint32_t sum = model.operand(floats({kCount}));
    const uint32_t same = model.operand(floats({kCount}));
    model.operation(ANEURALNETWORKS_ADD, {a, b, model.int32(ANEURALNETWORKS_FUSED_NONE)}, {sum});
    model.operation(ANEURALNETWORKS_RESHAPE,
                    {a, model.constant(ints({1}), std::vector{static_cast<int32_t>(kCount)})},
                    {same});
    model.finish({a, b}, {sum, same});
    const ndk::Compilation compilation =
        compileFor(model, {ndk::findDevice(vulkan::kVulkanDeviceName)});
    const memory::PoolRef client =
        *memory::Pool::ofFile(file.get(), 0, 3 * kBytes, memory::Mapping::Access::kReadWrite);
    auto* const values = reinterpret_cast<float*>(client->mutableData());
    const ndk::MemoryHandle whole = memoryOf(file, 3 * kBytes);
    const ndk::MemoryHandle other = memoryOf(file, 3 * kBytes);
    for (const ndk::MemoryHandle* const memory : {&whole, &other})
      for (const size_t place : {size_t{0}, kBytes / 2, kBytes}) {
        for (uint32_t i = 0; i < kCount; ++i) {
          values[i] = static_cast<float>(i);
          values[kCount + i] = static_cast<float>(i % 5);
        }
        ndk::Execution execution(compilation);
        EXPECT_CODE(NO_ERROR, setInput(execution, 0, whole, 0, kBytes));
        EXPECT_CODE(NO_ERROR, setInput(execution, 1, whole, kBytes, kBytes));
        EXPECT_CODE(NO_ERROR, setOutput(execution, 0, *memory, place, kBytes));
        EXPECT_CODE(NO_ERROR, setOutput(execution, 1, whole, 2 * kBytes, kBytes));
        execution.compute();
        uint32_t wrong = 0;
        for (uint32_t i = 0; i < kCount; ++i) {
          wrong += values[place / sizeof(float) + i] != static_cast<float>(i + i % 5);
          wrong += values[2 * kCount + i] != static_cast<float>(i);
        }
        EXPECT_EQ(wrong, 0u) << place;
      }
  }

  vulkan::GpuFacts facts_;
  std::unique_ptr<vulkan::FakeDmaBufs> fake_;
  std::unique_ptr<ipc::LocalHost> host_;
};

TEST_P(GpuMemoryTest, ABlobIsReachedByItsPages) {
  if (facts_.hostAlignment == 0) GTEST_SKIP() << "It takes no memory of the host.";
  AHardwareBuffer_Desc description = {};
  description.width = 3 * kBytes;
  description.height = description.layers = 1;
  description.format = AHARDWAREBUFFER_FORMAT_BLOB;
  description.usage = AHARDWAREBUFFER_USAGE_CPU_READ_OFTEN | AHARDWAREBUFFER_USAGE_CPU_WRITE_OFTEN;
  ndk::HardwareBufferHandle blob;
  ASSERT_EQ(AHardwareBuffer_allocate(&description, ndk::Out(blob)), 0);
  void* address = nullptr;
  ASSERT_EQ(AHardwareBuffer_lock(blob.get(), AHARDWAREBUFFER_USAGE_CPU_WRITE_OFTEN, -1, nullptr,
                                 &address),
            0);
  ndk::MemoryHandle memory;
  ASSERT_CODE(NO_ERROR,
              ANeuralNetworksMemory_createFromAHardwareBuffer(blob.get(), ndk::Out(memory)));
  EXPECT_THAT(add(memory, static_cast<float*>(address)), Contains("import pages").Times(1));
}

// Shared memory in place of one.
TEST_P(GpuMemoryTest, ADmaBufIsReachedByItsDescriptor) {
  if (!facts_.importsDmaBufs) GTEST_SKIP() << "It imports no dma-bufs.";
  const base::Descriptor file = fake_->make(3 * kBytes);
  void* const address =
      ::mmap(nullptr, 3 * kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  ASSERT_NE(address, MAP_FAILED);
  {
    const ndk::MemoryHandle memory = memoryOf(file, 3 * kBytes);
    auto* const values = static_cast<float*>(address);
    std::vector<std::string> calls = add(memory, values);
    EXPECT_THAT(calls, Contains("import descriptor").Times(1));
    EXPECT_THAT(calls, Contains("start CPU access").Times(1));
    fake_->taking = VK_ERROR_INVALID_EXTERNAL_HANDLE;
    calls = add(memory, values);
    EXPECT_THAT(calls, Contains("import descriptor").Times(1));
    EXPECT_THAT(calls, Not(Contains("start CPU access")));
  }
  ::munmap(address, 3 * kBytes);
}

TEST_P(GpuMemoryTest, TwoMemoriesOfOneFileAreRight) {
  const base::Descriptor file(::memfd_create("file", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 3 * kBytes), 0);
  useOverlapping(file);
}

TEST_P(GpuMemoryTest, TwoMemoriesOfOneDmaBufAreRight) {
  if (!facts_.importsDmaBufs) GTEST_SKIP() << "It imports no dma-bufs.";
  useOverlapping(fake_->make(3 * kBytes));
}

INSTANTIATE_TEST_SUITE_P(Ways, GpuMemoryTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& way) {
                           return way.param ? "host" : "process";
                         });

}  // namespace
}  // namespace hearth::nnapi
