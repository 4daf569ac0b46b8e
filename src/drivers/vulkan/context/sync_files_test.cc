// SPDX-License-Identifier: Apache-2.0
// The queue of a GPU that takes sync files. No implementation of Vulkan on the CPU does, so
// functions in place of Vulkan's take eventfds for them.
#include "drivers/vulkan/context/sync_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "drivers/vulkan/testing/test_gpu.h"
#include "drivers/vulkan/vulkan_device.h"
#include "hal/cts/fenced_sums.h"

namespace hearth::vulkan {
namespace {

using hal::cts::isReadable;
using hal::cts::only;
using testing::ElementsAre;

// A kernel with sync files. There is one, since functions of Vulkan know nothing of tests.
class FakeKernel {
 public:
  // Puts its functions in place of the GPU's.
  static void serve(Gpu& gpu) {
    kernel() = FakeKernel();
    kernel().sound_ = gpu.functions();
    VolkDeviceTable& functions = gpu.functionsForTest();
    functions.vkCreateSemaphore = create;
    functions.vkDestroySemaphore = destroy;
    functions.vkImportSemaphoreFdKHR = take;
    functions.vkGetSemaphoreFdKHR = give;
    functions.vkQueueSubmit = submit;
    gpu.factsForTest().hasSyncFiles = true;
  }
  static FakeKernel& kernel() {
    static FakeKernel one;
    return one;
  }
  // Joins what runs.
  void end() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  size_t semaphores() const { return semaphores_.size(); }
  int submissionsWithFiles = 0;
  bool isAlwaysDone = false;  // gives -1
  VkResult making = VK_SUCCESS;
  VkResult taking = VK_SUCCESS;
  VkResult giving = VK_SUCCESS;

 private:
  struct Semaphore {
    int waited = -1;     // the file that was taken
    int signalled = -1;  // an eventfd that a submission signals
  };

  static VkResult VKAPI_CALL create(VkDevice, const VkSemaphoreCreateInfo*,
                                    const VkAllocationCallbacks*, VkSemaphore* made) {
    if (kernel().making != VK_SUCCESS) return kernel().making;
    const uint64_t name = ++kernel().lastName_;
    kernel().semaphores_[name] = {};
    *made = reinterpret_cast<VkSemaphore>(name);
    return VK_SUCCESS;
  }
  static void VKAPI_CALL destroy(VkDevice, VkSemaphore semaphore, const VkAllocationCallbacks*) {
    const auto found = kernel().semaphores_.find(reinterpret_cast<uint64_t>(semaphore));
    if (found == kernel().semaphores_.end()) return;
    for (const int fd : {found->second.waited, found->second.signalled})
      if (fd >= 0) ::close(fd);
    kernel().semaphores_.erase(found);
  }
  static Semaphore& of(VkSemaphore semaphore) {
    return kernel().semaphores_.at(reinterpret_cast<uint64_t>(semaphore));
  }
  static VkResult VKAPI_CALL take(VkDevice, const VkImportSemaphoreFdInfoKHR* info) {
    EXPECT_EQ(info->flags, VK_SEMAPHORE_IMPORT_TEMPORARY_BIT);
    if (kernel().taking != VK_SUCCESS) return kernel().taking;
    int& waited = of(info->semaphore).waited;
    if (waited >= 0) ::close(waited);
    waited = info->fd;
    return VK_SUCCESS;
  }
  static VkResult VKAPI_CALL give(VkDevice, const VkSemaphoreGetFdInfoKHR* info, int* fd) {
    if (kernel().giving != VK_SUCCESS) return kernel().giving;
    Semaphore& semaphore = of(info->semaphore);
    if (kernel().isAlwaysDone) {
      kernel().end();
      ::close(semaphore.signalled);
      *fd = -1;
    } else {
      *fd = semaphore.signalled;
    }
    semaphore.signalled = -1;
    return VK_SUCCESS;
  }
  static VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos,
                                    VkFence fence) {
    EXPECT_EQ(count, 1u);
    VkSubmitInfo info = *infos;
    std::vector<int> waits;
    for (uint32_t i = 0; i < info.waitSemaphoreCount; ++i) {
      EXPECT_NE(info.pWaitDstStageMask[i], 0u);
      waits.push_back(std::exchange(of(info.pWaitSemaphores[i]).waited, -1));
    }
    int signalled = -1;
    if (info.signalSemaphoreCount != 0) {
      ++kernel().submissionsWithFiles;
      signalled = ::eventfd(0, EFD_CLOEXEC);
      int& given = of(info.pSignalSemaphores[0]).signalled;
      EXPECT_LT(given, 0) << "The semaphore is signalled already.";
      given = signalled;
      signalled = ::dup(signalled);
    }
    info.waitSemaphoreCount = info.signalSemaphoreCount = 0;
    const VkCommandBuffer commands = info.pCommandBuffers[0];
    auto run = [queue, info, commands, fence, waits, signalled]() mutable {
      for (const int wait : waits) EXPECT_TRUE(isReadable(base::Descriptor(wait), 60'000));
      info.pCommandBuffers = &commands;
      const std::lock_guard lock(kernel().queue());
      const VkResult result = kernel().sound_.vkQueueSubmit(queue, 1, &info, fence);
      EXPECT_EQ(kernel().sound_.vkQueueWaitIdle(queue), VK_SUCCESS);
      if (signalled >= 0) {
        ::eventfd_write(signalled, 1);
        ::close(signalled);
      }
      return result;
    };
    if (waits.empty()) return run();
    kernel().threads_.emplace_back(run);
    return VK_SUCCESS;
  }
  static std::mutex& queue() {
    static std::mutex mutex;
    return mutex;
  }

  VolkDeviceTable sound_{};
  uint64_t lastName_ = 0;
  std::map<uint64_t, Semaphore> semaphores_;
  std::vector<std::thread> threads_;
};

// A model that adds two tensors, of which all arguments lie on the GPU.
class SyncFilesTest : public testing::Test, protected hal::cts::FencedSums {
 protected:
  void SetUp() override {
    // A submission on another thread than the wait for its fence is nothing for the layer.
    GpuOptions options = validatedOptions();
    options.onValidationMessage = nullptr;
    const std::shared_ptr<Gpu> gpu = openTestGpu(options);
    if (gpu == nullptr) return;
    EXPECT_FALSE(gpu->facts().hasSyncFiles && gpu->facts().type == VK_PHYSICAL_DEVICE_TYPE_CPU)
        << "Where it takes sync files, they should be tested without the functions below.";
    FakeKernel::serve(*gpu);
    auto pipelines = Pipelines::create(gpu);
    ASSERT_TRUE(pipelines) << pipelines.error().toString();
    device_ =
        deviceOf(options, {gpu, std::move(*pipelines), std::make_shared<DeviceTensors>(), nullptr});
    ASSERT_NO_FATAL_FAILURE(prepareSums(*device_));
  }
  void TearDown() override {
    ::eventfd_write(gate_.get(), 1);
    kernel().end();
    forgetSums();
    device_.reset();
    EXPECT_EQ(kernel().semaphores(), 0u);
  }

  static FakeKernel& kernel() { return FakeKernel::kernel(); }

  const base::Descriptor gate_{::eventfd(0, EFD_CLOEXEC)};
  std::shared_ptr<hal::Device> device_;
};

TEST_F(SyncFilesTest, TheQueueWaitsAndTells) {
  const auto first = sum(0, 1, 2);
  const auto second = sum(2, 2, 0);
  for (int round = 0; round < 3; ++round) {
    const base::Descriptor gate(::eventfd(0, EFD_CLOEXEC));
    const auto firstEnd = first->startFenced(only(gate), {});
    ASSERT_TRUE(firstEnd) << firstEnd.error().toString();
    const auto secondEnd = second->startFenced(only(*firstEnd), {});
    ASSERT_TRUE(secondEnd) << secondEnd.error().toString();
    EXPECT_EQ(kernel().submissionsWithFiles, 2 * (round + 1));
    EXPECT_FALSE(isReadable(*secondEnd, 10));
    ASSERT_EQ(::eventfd_write(gate.get(), 1), 0);
    EXPECT_TRUE(isReadable(*secondEnd, 60'000));
    kernel().end();
    for (hal::Execution* const execution : {first.get(), second.get()}) {
      const hal::ExecutionResult result = execution->finishFenced();
      ASSERT_TRUE(result.status) << result.status.error().toString();
      EXPECT_EQ(result.copiedBytes, 0u);
    }
  }
  EXPECT_THAT(valuesOf(0), ElementsAre(22, 44));
}

TEST_F(SyncFilesTest, AFileOfWhatIsDoneIsReadable) {
  kernel().isAlwaysDone = true;
  const auto execution = sum(0, 1, 2);
  const auto end = execution->startFenced({}, {});
  ASSERT_TRUE(end) << end.error().toString();
  EXPECT_TRUE(isReadable(*end));
  EXPECT_TRUE(execution->finishFenced().status);
  EXPECT_THAT(valuesOf(2), ElementsAre(2, 4));
}

TEST_F(SyncFilesTest, AThreadWaitsForWhatIsNoSyncFile) {
  kernel().taking = VK_ERROR_INVALID_EXTERNAL_HANDLE;
  const auto execution = sum(0, 1, 2);
  const auto end = execution->startFenced(only(gate_), {});
  ASSERT_TRUE(end) << end.error().toString();
  EXPECT_EQ(kernel().submissionsWithFiles, 0);
  EXPECT_FALSE(isReadable(*end, 10));
  ASSERT_EQ(::eventfd_write(gate_.get(), 1), 0);
  EXPECT_TRUE(isReadable(*end, 60'000));
  EXPECT_TRUE(execution->finishFenced().status);
  EXPECT_THAT(valuesOf(2), ElementsAre(2, 4));
}

TEST_F(SyncFilesTest, AThreadWaitsWhereTheHostHasAnArgumentOrThereIsADeadline) {
  const memory::PoolRef out = poolOf({0, 0});
  hal::Argument inPool;
  inPool.kind = hal::Argument::Kind::kPool;
  inPool.pool = out;
  inPool.length = kBytes;
  auto toHost =
      prepared_->createExecution({{bufferArgument(0), bufferArgument(1)}, {std::move(inPool)}});
  ASSERT_TRUE(toHost) << toHost.error().toString();
  ASSERT_TRUE((*toHost)->startFenced({}, {}));
  EXPECT_TRUE((*toHost)->finishFenced().status);
  EXPECT_EQ(reinterpret_cast<const float*>(out->data())[1], 4.0f);
  const auto execution = sum(0, 1, 2);
  ASSERT_TRUE(execution->startFenced({}, base::Deadline::after(3'600'000'000'000)));
  EXPECT_TRUE(execution->finishFenced().status);
  EXPECT_EQ(kernel().submissionsWithFiles, 0);
}

TEST_F(SyncFilesTest, FunctionsThatFailAreErrors) {
  for (VkResult* const result : {&kernel().making, &kernel().taking}) {
    const auto execution = sum(0, 1, 2);
    const base::Descriptor gate(::eventfd(1, EFD_CLOEXEC));
    *result = VK_ERROR_OUT_OF_HOST_MEMORY;
    const auto end = execution->startFenced(only(gate), {});
    *result = VK_SUCCESS;
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code(), ErrorCode::kResourceExhaustedTransient);
    // The execution and the descriptor are none the worse.
    ASSERT_TRUE(execution->startFenced(only(gate), {}));
    kernel().end();
    EXPECT_TRUE(execution->finishFenced().status);
    EXPECT_THAT(valuesOf(2), ElementsAre(2, 4));
  }
}

TEST_F(SyncFilesTest, AnEndThatCannotBeToldIsAnError) {
  kernel().giving = VK_ERROR_OUT_OF_HOST_MEMORY;
  const auto execution = sum(0, 1, 2);
  const auto end = execution->startFenced({}, {});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code(), ErrorCode::kResourceExhaustedTransient);
  // The execution goes on, in both forms.
  EXPECT_TRUE(execution->compute({}).status);
  kernel().giving = VK_SUCCESS;
  ASSERT_TRUE(execution->startFenced({}, {}));
  EXPECT_TRUE(execution->finishFenced().status);
}

TEST_F(SyncFilesTest, AnExecutionThatIsGivenUpIsWaitedFor) {
  auto execution = sum(0, 1, 2);
  const auto end = execution->startFenced(only(gate_), {});
  ASSERT_TRUE(end) << end.error().toString();
  std::thread opener([&] { ::eventfd_write(gate_.get(), 1); });
  execution.reset();
  opener.join();
  EXPECT_TRUE(isReadable(*end, 60'000));
  EXPECT_THAT(valuesOf(2), ElementsAre(2, 4));
}

}  // namespace
}  // namespace hearth::vulkan
