// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/known_answers.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "cache/open_store.h"
#include "cache/testing/store_test_util.h"
#include "drivers/vulkan/sample_models.h"
#include "drivers/vulkan/shaders/shaders.h"
#include "drivers/vulkan/testing/test_gpu.h"
#include "drivers/vulkan/vulkan_device.h"
#include "hal/cts/model_builder.h"

namespace hearth::vulkan {
namespace {

class KnownAnswersTest : public testing::Test {
 protected:
  void SetUp() override {
    open_.gpu = openTestGpu();
    if (open_.gpu == nullptr) return;
    open_.pipelines = *Pipelines::create(open_.gpu);
    open_.tensors = std::make_shared<DeviceTensors>();
    open_.answers = std::make_shared<KnownAnswers>();
  }
  // A GPU whose shaders do nothing.
  void breakShaders() {
    open_.gpu->functionsForTest().vkCmdDispatch = [](VkCommandBuffer, uint32_t, uint32_t,
                                                     uint32_t) {
    };
  }

  OpenGpu open_;
};

TEST_F(KnownAnswersTest, EveryShaderComputesItsSampleRightly) {
  for (const EmbeddedShader& shader : embeddedShaders()) {
    const std::string name(shader.name);
    ASSERT_TRUE(sampleModelOf(name)) << name;
    const Status right = open_.answers->check(open_, name);
    EXPECT_TRUE(right) << right.error().toString();
  }
  EXPECT_TRUE(open_.answers->wrongShaders().empty());
}

TEST_F(KnownAnswersTest, EverySampleShowsAShaderThatIsWrong) {
  breakShaders();
  for (const EmbeddedShader& shader : embeddedShaders()) {
    const Status right = open_.answers->check(open_, std::string(shader.name));
    ASSERT_FALSE(right) << shader.name;
    EXPECT_EQ(right.error().code(), ErrorCode::kUnsupported);
    EXPECT_NE(right.error().message().find(shader.name), std::string::npos);
  }
  EXPECT_EQ(open_.answers->wrongShaders().size(), embeddedShaders().size());
}

TEST_F(KnownAnswersTest, OperationsWhoseShaderIsWrongAreLeftToOtherDevices) {
  breakShaders();
  const graph::Model model = hal::cts::convolutionModel(5);
  const auto prepared = VulkanPreparedModel::create(open_, model, {}, {});
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code(), ErrorCode::kUnsupported);
  const auto device = deviceOf(validatedOptions(), open_);
  const auto supported = device->supportedOperations(model);
  ASSERT_TRUE(supported);
  EXPECT_FALSE(supported->front().supported);
  EXPECT_NE(supported->front().reason.find("wrongly"), std::string::npos)
      << supported->front().reason;
}

TEST_F(KnownAnswersTest, LaterProcessesDoNotTryAShaderAgain) {
  const cache::TempFolder folder(cache::TempFolder::Place::kMemory);
  cache::StoreOptions options;
  options.path = folder.path() / "store";
  const auto openStore = [&] {
    return cache::openSegmentStore(options);
  };
  {
    KnownAnswers first(openStore);
    EXPECT_TRUE(first.check(open_, "unary.f32"));
    const PFN_vkCmdDispatch dispatch = open_.gpu->functions().vkCmdDispatch;
    breakShaders();
    EXPECT_FALSE(first.check(open_, "softmax.f32"));
    open_.gpu->functionsForTest().vkCmdDispatch = dispatch;
    EXPECT_TRUE(first.check(open_, "binary.f32"));
    first.flush();
  }
  breakShaders();
  KnownAnswers second(openStore);
  EXPECT_TRUE(second.check(open_, "unary.f32"));
  EXPECT_TRUE(second.check(open_, "binary.f32"));
  // What was wrong is not taken for known.
  EXPECT_FALSE(second.check(open_, "softmax.f32"));
}

TEST_F(KnownAnswersTest, AReportNamesTheShadersThatAreNotUsed) {
  const PFN_vkCmdDispatch dispatch = open_.gpu->functions().vkCmdDispatch;
  breakShaders();
  EXPECT_FALSE(open_.answers->check(open_, "softmax.f32"));
  open_.gpu->functionsForTest().vkCmdDispatch = dispatch;
  const auto prepared = VulkanPreparedModel::create(open_, hal::cts::convolutionModel(5), {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  EXPECT_EQ((*prepared)->startReport().routedAround, std::vector<std::string>{"softmax.f32"});
}

}  // namespace
}  // namespace hearth::vulkan
