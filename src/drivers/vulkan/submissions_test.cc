// SPDX-License-Identifier: Apache-2.0
// A model with many products goes to the queue in several submissions.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "drivers/vulkan/prepared_model.h"
#include "drivers/vulkan/testing/test_gpu.h"
#include "hal/cts/model_builder.h"

namespace hearth::vulkan {
namespace {

using graph::OperandType;
using graph::OperationType;

constexpr uint32_t kWidth = 40;
constexpr uint32_t kLayers = 6;
constexpr uint64_t kProductsOfLayer = uint64_t{kWidth} * kWidth;

// Functions of Vulkan know nothing of tests.
PFN_vkQueueSubmit soundSubmit = nullptr;
int submissions = 0;
int failing = 0;  // which submission fails, from 1 on

VkResult VKAPI_CALL countedSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos,
                                  VkFence fence) {
  if (++submissions == failing) return VK_ERROR_OUT_OF_HOST_MEMORY;
  return soundSubmit(queue, count, infos, fence);
}

class SubmissionsTest : public testing::Test {
 protected:
  void SetUp() override {
    gpu_ = openTestGpu();
    if (gpu_ == nullptr) return;
    soundSubmit = std::exchange(gpu_->functionsForTest().vkQueueSubmit, countedSubmit);
    auto pipelines = Pipelines::create(gpu_);
    ASSERT_TRUE(pipelines) << pipelines.error().toString();
    pipelines_ = *std::move(pipelines);
  }

  // Fully connected layers, one after the other, of which a submission takes so many products.
  std::unique_ptr<hal::Execution> execution(uint64_t mostProducts) {
    gpu_->factsForTest().mostProducts = mostProducts;
    hal::cts::ModelBuilder builder;
    uint32_t value = builder.input(OperandType::kTensorFloat32, {1, kWidth});
    const uint32_t none = builder.scalar(int32_t{0});
    const std::vector<float> bias(kWidth, 0.25f);
    for (uint32_t layer = 0; layer < kLayers; ++layer) {
      std::vector<float> weights(kProductsOfLayer);
      for (size_t i = 0; i < weights.size(); ++i)
        weights[i] = static_cast<float>((i * 7 + layer) % 11) * 0.01f - 0.05f;
      const uint32_t next = layer + 1 < kLayers
                                ? builder.temporary(OperandType::kTensorFloat32, {1, kWidth})
                                : builder.output(OperandType::kTensorFloat32, {1, kWidth});
      builder.operation(
          OperationType::kFullyConnected,
          {value, builder.constant(OperandType::kTensorFloat32, {kWidth, kWidth}, weights),
           builder.constant(OperandType::kTensorFloat32, {kWidth}, bias), none},
          {next});
      value = next;
    }
    const graph::Model model = builder.model();
    auto prepared = VulkanPreparedModel::create(
        {gpu_, pipelines_, std::make_shared<DeviceTensors>(), nullptr}, model, {}, {});
    EXPECT_TRUE(prepared) << prepared.error().toString();
    if (!prepared) return nullptr;
    hal::Request request;
    for (auto* const values : {&input_, &output_}) {
      hal::Argument argument;
      argument.kind = hal::Argument::Kind::kPointer;
      argument.pointer = values->data();
      argument.length = values->size() * sizeof(float);
      (values == &input_ ? request.inputs : request.outputs).push_back(std::move(argument));
    }
    auto made = (*prepared)->createExecution(std::move(request));
    EXPECT_TRUE(made) << made.error().toString();
    return made ? *std::move(made) : nullptr;
  }

  // How many submissions a computation takes.
  static int submissionsOf(hal::Execution& execution) {
    submissions = 0;
    const Status status = execution.compute({}).status;
    EXPECT_TRUE(status) << status.error().toString();
    return submissions;
  }

  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<Pipelines> pipelines_;
  std::vector<float> input_ = std::vector<float>(kWidth, 1.5f);
  std::vector<float> output_ = std::vector<float>(kWidth);
};

TEST_F(SubmissionsTest, EachTakesSoManyProducts) {
  ASSERT_EQ(submissionsOf(*execution(UINT64_MAX)), 1);
  const std::vector<float> expected = output_;
  // A layer that is too large for any submission has one for itself.
  for (const auto& [most, count] :
       {std::pair(kLayers * kProductsOfLayer, 1), std::pair(kLayers * kProductsOfLayer - 1, 2),
        std::pair(2 * kProductsOfLayer, 3), std::pair(kProductsOfLayer, 6),
        std::pair(uint64_t{1}, 6)}) {
    SCOPED_TRACE(most);
    const auto execution = this->execution(most);
    for (int run = 0; run < 2; ++run) {
      output_.assign(kWidth, 0);
      EXPECT_EQ(submissionsOf(*execution), count);
      EXPECT_EQ(output_, expected);
    }
  }
}

TEST_F(SubmissionsTest, OneThatFailsLeavesNothingRunning) {
  const auto execution = this->execution(kProductsOfLayer);
  ASSERT_EQ(submissionsOf(*execution), 6);
  const std::vector<float> expected = output_;
  for (int which = 1; which <= 6; ++which) {
    submissions = 0;
    failing = which;
    const Status status = execution->compute({}).status;
    failing = 0;
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::kResourceExhaustedTransient);
    EXPECT_EQ(submissions, which);
    output_.assign(kWidth, 0);
    EXPECT_EQ(submissionsOf(*execution), 6);
    EXPECT_EQ(output_, expected);
  }
}

// The queue waits for sync files at the first of them only.
TEST_F(SubmissionsTest, SeveralAreNotStartedWithFences) {
  gpu_->factsForTest().hasSyncFiles = true;
  auto commands = Commands::create(gpu_);
  ASSERT_TRUE(commands) << commands.error().toString();
  ASSERT_TRUE((*commands)->begin());
  ASSERT_TRUE((*commands)->split());
  ASSERT_TRUE((*commands)->end());
  const auto started = (*commands)->start({});
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace hearth::vulkan
