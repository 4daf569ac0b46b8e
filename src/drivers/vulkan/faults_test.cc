// SPDX-License-Identifier: Apache-2.0
// Functions of Vulkan that fail, one after the other: each is an error of the preparation or of the
// computation, and nothing is left allocated, which the validation layer checks when the device is
// destroyed.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "drivers/vulkan/prepared_model.h"
#include "drivers/vulkan/testing/validated_device.h"
#include "hal/cts/model_builder.h"

namespace hearth::vulkan {
namespace {

constexpr auto kExhausted = [](auto...) {
  return VK_ERROR_OUT_OF_DEVICE_MEMORY;
};

struct Fault {
  const char* name;
  void (*put)(VolkDeviceTable& functions);
};

#define HEARTH_FAULT(function)                 \
  {#function, [](VolkDeviceTable& functions) { \
     functions.function = kExhausted;          \
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
#undef HEARTH_FAULT

// Prepares a convolution and computes it once.
Status computeOnce(const std::shared_ptr<Gpu>& gpu) {
  HEARTH_ASSIGN(std::shared_ptr<Pipelines> pipelines, Pipelines::create(gpu));
  HEARTH_ASSIGN(const auto prepared,
                VulkanPreparedModel::create({gpu, std::move(pipelines)},
                                            hal::cts::convolutionModel(5), {}, {}));
  std::vector<float> input(5 * 5 * 3, 1.0f), output(5 * 5 * 4);
  hal::Request request;
  for (std::vector<float>* values : {&input, &output}) {
    hal::Argument argument;
    argument.kind = hal::Argument::Kind::kPointer;
    argument.pointer = values->data();
    argument.length = values->size() * sizeof(float);
    (values == &input ? request.inputs : request.outputs).push_back(std::move(argument));
  }
  HEARTH_ASSIGN(const auto execution, prepared->createExecution(std::move(request)));
  HEARTH_TRY(execution->compute({}).status);
  EXPECT_EQ(output[0], 12.0f);  // four places of three ones
  return {};
}

TEST(VulkanFaultsTest, AFunctionThatFailsIsAnError) {
  for (const Fault& fault : kFaults) {
    auto gpu = Gpu::open(validatedOptions());
    if (!gpu && gpu.error().code() == ErrorCode::kUnavailableDevice)
      GTEST_SKIP() << gpu.error().toString();
    ASSERT_TRUE(gpu) << gpu.error().toString();
    ASSERT_TRUE(computeOnce(*gpu)) << fault.name;
    const VolkDeviceTable sound = (*gpu)->functions();
    fault.put((*gpu)->functionsForTest());
    const Status status = computeOnce(*gpu);
    ASSERT_FALSE(status) << fault.name;
    EXPECT_EQ(status.error().code(), ErrorCode::kResourceExhaustedTransient) << fault.name;
    EXPECT_NE(status.error().message().find(fault.name), std::string::npos)
        << status.error().message();
    // The device goes on.
    (*gpu)->functionsForTest() = sound;
    EXPECT_TRUE(computeOnce(*gpu)) << fault.name;
  }
}

}  // namespace
}  // namespace hearth::vulkan
