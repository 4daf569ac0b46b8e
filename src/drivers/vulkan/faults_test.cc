// SPDX-License-Identifier: Apache-2.0
// Functions of Vulkan that fail, one after the other: each is an error of the preparation or of the
// computation, and nothing is left allocated, which the validation layer checks when the device is
// destroyed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "drivers/vulkan/prepared_model.h"
#include "drivers/vulkan/testing/test_gpu.h"
#include "drivers/vulkan/vulkan_device.h"
#include "hal/cts/model_builder.h"
#include "memory/pool.h"

namespace hearth::vulkan {
namespace {

using testing::UnorderedElementsAre;

int failures = 0;  // of functions, since a test has begun to count

// Puts a function in place of one of Vulkan's that fails with a result.
template <VkResult kResult>
constexpr auto kFailing = [](auto...) {
  ++failures;
  return kResult;
};

struct Fault {
  const char* name;
  void (*exhaust)(VolkDeviceTable& functions);
  void (*lose)(VolkDeviceTable& functions);
  // From one table to another.
  void (*copy)(const VolkDeviceTable& from, VolkDeviceTable& to);
};

#define HEARTH_FAULT(function)                                                              \
  {#function,                                                                               \
   [](VolkDeviceTable& functions) {                                                         \
     functions.function = kFailing<VK_ERROR_OUT_OF_DEVICE_MEMORY>;                          \
   },                                                                                       \
   [](VolkDeviceTable& functions) { functions.function = kFailing<VK_ERROR_DEVICE_LOST>; }, \
   [](const VolkDeviceTable& from, VolkDeviceTable& to) {                                   \
     to.function = from.function;                                                           \
   }}
constexpr Fault kFaults[] = {
    HEARTH_FAULT(vkAllocateCommandBuffers),
    HEARTH_FAULT(vkAllocateDescriptorSets),
    HEARTH_FAULT(vkAllocateMemory),
    HEARTH_FAULT(vkBeginCommandBuffer),
    HEARTH_FAULT(vkBindBufferMemory),
    HEARTH_FAULT(vkCreateBuffer),
    HEARTH_FAULT(vkCreateCommandPool),
    HEARTH_FAULT(vkCreateComputePipelines),
    HEARTH_FAULT(vkCreateDescriptorPool),
    HEARTH_FAULT(vkCreateDescriptorSetLayout),
    HEARTH_FAULT(vkCreateFence),
    HEARTH_FAULT(vkCreatePipelineLayout),
    HEARTH_FAULT(vkCreateShaderModule),
    HEARTH_FAULT(vkEndCommandBuffer),
    HEARTH_FAULT(vkMapMemory),
    HEARTH_FAULT(vkQueueSubmit),
    HEARTH_FAULT(vkResetCommandPool),
    HEARTH_FAULT(vkResetFences),
};
// Without these a pipeline is compiled all the same, and not kept.
constexpr Fault kHarmless[] = {
    HEARTH_FAULT(vkCreatePipelineCache),
    HEARTH_FAULT(vkGetPipelineCacheData),
};
// These only say how memory of the client becomes a buffer; else it is copied.
constexpr Fault kOfImports[] = {
    HEARTH_FAULT(vkGetMemoryFdPropertiesKHR),
    HEARTH_FAULT(vkGetMemoryHostPointerPropertiesEXT),
};
// GpuTest has vkWaitForFences, and SyncFileTest what semaphores need.
constexpr Fault kOthers[] = {
    HEARTH_FAULT(vkWaitForFences),
};
#undef HEARTH_FAULT

// Those that cannot fail.
void copyOthers(const VolkDeviceTable& from, VolkDeviceTable& to) {
#define HEARTH_COPY(function) to.function = from.function
  HEARTH_COPY(vkCmdBindDescriptorSets);
  HEARTH_COPY(vkCmdBindPipeline);
  HEARTH_COPY(vkCmdCopyBuffer);
  HEARTH_COPY(vkCmdDispatch);
  HEARTH_COPY(vkCmdFillBuffer);
  HEARTH_COPY(vkCmdPipelineBarrier);
  HEARTH_COPY(vkCmdPushConstants);
  HEARTH_COPY(vkDestroyBuffer);
  HEARTH_COPY(vkDestroyCommandPool);
  HEARTH_COPY(vkDestroyDescriptorPool);
  HEARTH_COPY(vkDestroyDescriptorSetLayout);
  HEARTH_COPY(vkDestroyDevice);
  HEARTH_COPY(vkDestroyFence);
  HEARTH_COPY(vkDestroyPipeline);
  HEARTH_COPY(vkDestroyPipelineCache);
  HEARTH_COPY(vkDestroyPipelineLayout);
  HEARTH_COPY(vkDestroySemaphore);
  HEARTH_COPY(vkDestroyShaderModule);
  HEARTH_COPY(vkFreeMemory);
  HEARTH_COPY(vkGetBufferMemoryRequirements);
  HEARTH_COPY(vkUpdateDescriptorSets);
#undef HEARTH_COPY
}

// Of the convolution.
constexpr uint64_t kInputs = 5 * 5 * 3, kOutputs = 5 * 5 * 4;

hal::Argument argumentOf(std::vector<float>& values) {
  hal::Argument argument;
  argument.kind = hal::Argument::Kind::kPointer;
  argument.pointer = values.data();
  argument.length = values.size() * sizeof(float);
  return argument;
}

hal::Argument argumentOf(memory::PoolRef pool, uint64_t offset, uint64_t length) {
  hal::Argument argument;
  argument.kind = hal::Argument::Kind::kPool;
  argument.pool = std::move(pool);
  argument.offset = offset;
  argument.length = length;
  return argument;
}

// Computes a convolution once.
Status computeOnce(hal::PreparedModel& prepared) {
  std::vector<float> input(kInputs, 1.0f), output(kOutputs);
  hal::Request request;
  request.inputs.push_back(argumentOf(input));
  request.outputs.push_back(argumentOf(output));
  HEARTH_ASSIGN(const auto execution, prepared.createExecution(std::move(request)));
  HEARTH_TRY(execution->compute({}).status);
  EXPECT_EQ(output[0], 12.0f);  // four places of three ones
  return {};
}

Result<std::shared_ptr<hal::PreparedModel>> prepareConvolution(const std::shared_ptr<Gpu>& gpu) {
  HEARTH_ASSIGN(std::shared_ptr<Pipelines> pipelines, Pipelines::create(gpu));
  return VulkanPreparedModel::create({gpu, std::move(pipelines)}, hal::cts::convolutionModel(5), {},
                                     {});
}

// Prepares it before.
Status computeOnce(const std::shared_ptr<Gpu>& gpu) {
  HEARTH_ASSIGN(const auto prepared, prepareConvolution(gpu));
  return computeOnce(*prepared);
}

// How the GPU reaches memories of the client.
enum class Import { kPages, kDescriptor };

// A GPU that imports little memories, too, and takes shared memory for dma-bufs where it imports
// these. Null where it cannot.
std::shared_ptr<Gpu> openForImports(Import import) {
  std::shared_ptr<Gpu> gpu = openTestGpu();
  if (gpu == nullptr) return nullptr;
  gpu->factsForTest().leastImport = 1;
  const bool isOfDmaBufs = import == Import::kDescriptor;
  if (isOfDmaBufs)
    gpu->dmaBufCallsForTest() = {[](int) { return true; },
                                 [](int, uint64_t) {
                                   return Status();
                                 }};
  return (isOfDmaBufs ? gpu->facts().importsDmaBufs : gpu->importsHostMemory()) ? gpu : nullptr;
}

// As computeOnce(), with arguments in a memory; says how many of their bytes were copied.
Result<uint64_t> computeInMemory(hal::PreparedModel& prepared) {
  constexpr uint64_t kPlace = 4096;  // where a tensor may begin, on any GPU
  HEARTH_ASSIGN(const memory::PoolRef pool, memory::Pool::anonymous(2 * kPlace));
  auto* const values = reinterpret_cast<float*>(pool->mutableData());
  std::fill_n(values, kInputs, 1.0f);
  hal::Request request;
  request.inputs.push_back(argumentOf(pool, 0, kInputs * sizeof(float)));
  request.outputs.push_back(argumentOf(pool, kPlace, kOutputs * sizeof(float)));
  HEARTH_ASSIGN(const auto execution, prepared.createExecution(std::move(request)));
  const hal::ExecutionResult result = execution->compute({});
  HEARTH_TRY(result.status);
  EXPECT_EQ(values[kPlace / sizeof(float)], 12.0f);
  return result.copiedBytes;
}

// Where the memory was imported, only outputs are copied.
constexpr uint64_t kCopiedOfImport = kOutputs * sizeof(float);
constexpr uint64_t kCopiedOfAll = (kInputs + kOutputs) * sizeof(float);

class VulkanFaultsTest : public testing::Test {
 protected:
  void SetUp() override { gpu_ = openTestGpu(); }
  std::unique_ptr<hal::Device> device() const {
    return deviceOf(validatedOptions(),
                    {gpu_, *Pipelines::create(gpu_), std::make_shared<DeviceTensors>(), nullptr});
  }

  std::shared_ptr<Gpu> gpu_;
};

TEST_F(VulkanFaultsTest, AFunctionThatFailsIsAnError) {
  const VolkDeviceTable sound = gpu_->functions();
  for (const Fault& fault : kFaults) {
    fault.exhaust(gpu_->functionsForTest());
    const Status status = computeOnce(gpu_);
    ASSERT_FALSE(status) << fault.name;
    EXPECT_EQ(status.error().code(), ErrorCode::kResourceExhaustedTransient) << fault.name;
    EXPECT_NE(status.error().message().find(fault.name), std::string::npos)
        << status.error().message();
    // The device goes on.
    gpu_->functionsForTest() = sound;
    EXPECT_TRUE(computeOnce(gpu_)) << fault.name;
  }
  for (const Fault& fault : kHarmless) {
    failures = 0;
    fault.exhaust(gpu_->functionsForTest());
    EXPECT_TRUE(computeOnce(gpu_)) << fault.name;
    EXPECT_GT(failures, 0) << fault.name;
    gpu_->functionsForTest() = sound;
  }
}

// Functions that fail while memory of the client becomes a buffer, and afterwards.
TEST_F(VulkanFaultsTest, WhereAFunctionFailsForAnImportMemoryIsCopied) {
  std::vector<Fault> faults(std::begin(kFaults), std::end(kFaults));
  faults.insert(faults.end(), std::begin(kOfImports), std::end(kOfImports));
  for (const auto& [import, asking] :
       {std::pair{Import::kPages, "vkGetMemoryHostPointerPropertiesEXT"},
        std::pair{Import::kDescriptor, "vkGetMemoryFdPropertiesKHR"}}) {
    std::set<std::string> copied, failed;
    OpenGpu open;
    for (const Fault& fault : faults) {
      SCOPED_TRACE(fault.name);
      if (open.gpu == nullptr || !open.gpu->importsHostMemory()) {
        open.gpu = openForImports(import);
        if (open.gpu == nullptr) GTEST_SKIP() << "It imports no such memory.";
        open.pipelines = *Pipelines::create(open.gpu);
      }
      // With buffers for all arguments, as another one may have made them before.
      const auto prepared =
          VulkanPreparedModel::create(open, hal::cts::convolutionModel(5), {}, {});
      ASSERT_TRUE(prepared) << prepared.error().toString();
      const VolkDeviceTable sound = open.gpu->functions();
      failures = 0;
      fault.exhaust(open.gpu->functionsForTest());
      const Result<uint64_t> result = computeInMemory(**prepared);
      open.gpu->functionsForTest() = sound;
      if (failures == 0) {
        ASSERT_TRUE(result) << result.error().toString();
        EXPECT_EQ(*result, kCopiedOfImport);
        continue;
      }
      if (result) {
        EXPECT_EQ(*result, kCopiedOfAll);
        copied.insert(fault.name);
      } else {
        EXPECT_EQ(result.error().code(), ErrorCode::kResourceExhaustedTransient);
        failed.insert(fault.name);
      }
      // The device goes on.
      const Result<uint64_t> next = computeInMemory(**prepared);
      EXPECT_TRUE(next) << next.error().toString();
    }
    EXPECT_THAT(copied, UnorderedElementsAre("vkAllocateMemory", "vkBindBufferMemory",
                                             "vkCreateBuffer", asking));
    EXPECT_THAT(failed, UnorderedElementsAre("vkAllocateCommandBuffers", "vkAllocateDescriptorSets",
                                             "vkBeginCommandBuffer", "vkCreateCommandPool",
                                             "vkCreateDescriptorPool", "vkCreateFence",
                                             "vkEndCommandBuffer", "vkQueueSubmit",
                                             "vkResetCommandPool", "vkResetFences"));
  }
}

TEST_F(VulkanFaultsTest, AFunctionThatLosesTheDeviceMakesADeadObject) {
  for (const Fault& fault : kFaults) {
    const auto gpu = openTestGpu();
    ASSERT_NE(gpu, nullptr);
    fault.lose(gpu->functionsForTest());
    const Status status = computeOnce(gpu);
    ASSERT_FALSE(status) << fault.name;
    EXPECT_EQ(status.error().code(), ErrorCode::kDeadObject) << fault.name;
  }
}

TEST_F(VulkanFaultsTest, MemoryMayEndAtEachAllocation) {
  static int left;
  static PFN_vkAllocateMemory allocate;
  allocate = gpu_->functions().vkAllocateMemory;
  gpu_->functionsForTest().vkAllocateMemory = [](VkDevice device, const VkMemoryAllocateInfo* info,
                                                 const VkAllocationCallbacks* callbacks,
                                                 VkDeviceMemory* memory) {
    return left-- > 0 ? allocate(device, info, callbacks, memory) : VK_ERROR_OUT_OF_DEVICE_MEMORY;
  };
  int allocations = 0;
  for (;; ++allocations) {
    left = allocations;
    const Status status = computeOnce(gpu_);
    if (status) break;
    ASSERT_EQ(status.error().code(), ErrorCode::kResourceExhaustedTransient);
    ASSERT_LT(allocations, 100);
  }
  // Constants with their stage, the arena, inputs and outputs.
  EXPECT_GE(allocations, 4);
}

// So that this test knows of each function that the driver begins to use.
TEST_F(VulkanFaultsTest, TheDriverNeedsNoFunctionBesidesThese) {
  const auto leaveListed = [](Gpu& gpu) {
    VolkDeviceTable listed{};
    for (const Fault& fault : kFaults) fault.copy(gpu.functions(), listed);
    for (const Fault& fault : kHarmless) fault.copy(gpu.functions(), listed);
    for (const Fault& fault : kOfImports) fault.copy(gpu.functions(), listed);
    for (const Fault& fault : kOthers) fault.copy(gpu.functions(), listed);
    copyOthers(gpu.functions(), listed);
    gpu.functionsForTest() = listed;
  };
  leaveListed(*gpu_);
  const Status status = computeOnce(gpu_);
  EXPECT_TRUE(status) << status.error().toString();
  for (const Import import : {Import::kPages, Import::kDescriptor}) {
    const std::shared_ptr<Gpu> gpu = openForImports(import);
    if (gpu == nullptr) GTEST_SKIP() << "It imports no such memory.";
    leaveListed(*gpu);
    const auto prepared = prepareConvolution(gpu);
    ASSERT_TRUE(prepared) << prepared.error().toString();
    const Result<uint64_t> copied = computeInMemory(**prepared);
    ASSERT_TRUE(copied) << copied.error().toString();
    EXPECT_EQ(*copied, kCopiedOfImport);
  }
}

TEST_F(VulkanFaultsTest, AFunctionThatFailsForMemoryOfTheDeviceIsAnError) {
  const auto device = this->device();
  const auto prepared = device->prepareModel(
      std::make_shared<const graph::Model>(hal::cts::convolutionModel(5)), {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  const auto useMemory = [&]() -> Status {
    HEARTH_ASSIGN(const auto buffer, device->allocate({}, {{*prepared, true, 0}}));
    HEARTH_ASSIGN(const memory::PoolRef pool, memory::Pool::anonymous(kInputs * sizeof(float)));
    HEARTH_TRY(buffer->copyFrom(pool, {}));
    return buffer->copyTo(pool);
  };
  const VolkDeviceTable sound = gpu_->functions();
  int errors = 0;
  for (const Fault& fault : kFaults) {
    fault.exhaust(gpu_->functionsForTest());
    const Status status = useMemory();
    gpu_->functionsForTest() = sound;
    // Some functions are for shaders only.
    if (status) continue;
    ++errors;
    EXPECT_EQ(status.error().code(), ErrorCode::kResourceExhaustedTransient) << fault.name;
    EXPECT_NE(status.error().message().find(fault.name), std::string::npos)
        << status.error().message();
    EXPECT_TRUE(useMemory()) << fault.name;
  }
  EXPECT_EQ(errors, 12);
  EXPECT_TRUE(computeOnce(**prepared));
}

// Such as a shader in an endless loop: nothing else on the GPU is believed.
TEST_F(VulkanFaultsTest, AKernelThatNeverEndsIsADeadObject) {
  const auto device = this->device();
  const auto model = std::make_shared<const graph::Model>(hal::cts::convolutionModel(5));
  const auto hung = device->prepareModel(model, {}, {});
  ASSERT_TRUE(hung) << hung.error().toString();
  const auto buffer = device->allocate({}, {{*hung, true, 0}});
  ASSERT_TRUE(buffer) << buffer.error().toString();
  gpu_->functionsForTest().vkWaitForFences = [](VkDevice, uint32_t, const VkFence*, VkBool32,
                                                uint64_t timeout) {
    EXPECT_LT(timeout, UINT64_MAX);
    return VK_TIMEOUT;
  };
  for (int i = 0; i < 2; ++i) {
    const Status status = computeOnce(**hung);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::kDeadObject);
  }
  const memory::PoolRef pool = *memory::Pool::anonymous(kInputs * sizeof(float));
  EXPECT_FALSE((*buffer)->copyTo(pool));
  const auto prepared = device->prepareModel(model, {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  EXPECT_TRUE(computeOnce(**prepared));
  // Memory of the old context is of no use to the new one.
  EXPECT_FALSE(device->allocate({}, {{*hung, true, 0}}));
  hal::Request request;
  hal::Argument old;
  old.kind = hal::Argument::Kind::kBuffer;
  old.token = (*buffer)->token();
  request.inputs.push_back(std::move(old));
  std::vector<float> output(kOutputs);
  request.outputs.push_back(argumentOf(output));
  EXPECT_FALSE((*prepared)->createExecution(std::move(request)));
}

TEST_F(VulkanFaultsTest, ALostGpuIsOpenedAgainForTheNextModel) {
  const auto device = this->device();
  const auto model = std::make_shared<const graph::Model>(hal::cts::convolutionModel(5));
  ASSERT_TRUE(device->prepareModel(model, {}, {}));
  gpu_->functionsForTest().vkQueueSubmit = kFailing<VK_ERROR_DEVICE_LOST>;
  const auto lost = device->prepareModel(model, {}, {});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code(), ErrorCode::kDeadObject);
  const auto prepared = device->prepareModel(model, {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  const Status computed = computeOnce(**prepared);
  EXPECT_TRUE(computed) << computed.error().toString();
}

}  // namespace
}  // namespace hearth::vulkan
