// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/product_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cache/open_store.h"
#include "cache/testing/store_test_util.h"
#include "drivers/vulkan/plan/products.h"
#include "drivers/vulkan/prepared_model.h"
#include "drivers/vulkan/sample_models.h"
#include "drivers/vulkan/shaders/shaders.h"
#include "drivers/vulkan/testing/reference_test.h"
#include "drivers/vulkan/testing/validated_device.h"
#include "hal/cts/model_builder.h"

namespace hearth::vulkan {
namespace {

using State = hal::TuningReport::State;

bool hasParts(std::string_view shader) {
  return shader.starts_with("convolution.") || shader.starts_with("matmul.");
}

const Dispatch& productOf(const VulkanPreparedModel& prepared) {
  return *std::ranges::find_if(prepared.plan().dispatches, [](const Dispatch& dispatch) {
    return productShapeOf(dispatch).has_value();
  });
}

class ProductTunerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto gpu = Gpu::open(validatedOptions());
    if (!gpu && gpu.error().code() == ErrorCode::kUnavailableDevice)
      GTEST_SKIP() << gpu.error().toString();
    ASSERT_TRUE(gpu) << gpu.error().toString();
    open_.gpu = *std::move(gpu);
    // An implementation on the CPU is not measured.
    open_.gpu->factsForTest().type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    open_.pipelines = *Pipelines::create(open_.gpu);
    tuned_.isTuned = true;
  }
  ProductParts::OpenStore openStore() const {
    return [path = (folder_.path() / "store").string()] {
      cache::StoreOptions options;
      options.path = path;
      return cache::openSegmentStore(options);
    };
  }
  std::shared_ptr<VulkanPreparedModel> prepare(const graph::Model& model,
                                               const hal::PrepareOptions& options) const {
    auto prepared = VulkanPreparedModel::create(open_, model, options, {});
    EXPECT_TRUE(prepared) << prepared.error().toString();
    return prepared ? *prepared : nullptr;
  }
  hal::TuningReport tuning(const graph::Model& model) const {
    return prepare(model, tuned_)->startReport().tuning;
  }

  const cache::TempFolder folder_{cache::TempFolder::Place::kMemory};
  OpenGpu open_;
  hal::PrepareOptions tuned_;
};

TEST_F(ProductTunerTest, ResultsAreTheSameBitsInAllParts) {
  std::vector<SampleModel> samples;
  for (const EmbeddedShader& shader : embeddedShaders())
    if (hasParts(shader.name)) samples.push_back(*sampleModelOf(std::string(shader.name)));
  ASSERT_GE(samples.size(), 11u);
  // One of several tiles in any parts.
  std::vector<float> image(33 * 33 * 3);
  for (size_t i = 0; i < image.size(); ++i) image[i] = 1.0f / static_cast<float>(i + 1);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(image.data());
  samples.push_back({std::make_shared<const graph::Model>(hal::cts::convolutionModel(33)),
                     {{bytes, bytes + image.size() * sizeof(float)}}});
  for (const SampleModel& sample : samples) {
    std::vector<std::vector<uint8_t>> results;
    for (uint32_t part = 0; part < kParts.size(); ++part) {
      open_.part = part;
      const auto prepared = prepare(*sample.model, {});
      ASSERT_NE(prepared, nullptr);
      const Dispatch& product = productOf(*prepared);
      EXPECT_EQ(product.constant, part) << product.shader;
      auto result = computeModel(*prepared, *sample.model, sample.inputs);
      ASSERT_TRUE(result) << result.error().toString();
      results.push_back(*std::move(result));
      EXPECT_EQ(results.back(), results.front()) << product.shader;
    }
  }
}

TEST_F(ProductTunerTest, EachClassIsMeasuredOnceForAllProcesses) {
  const graph::Model model = hal::cts::convolutionModel(5);
  {
    open_.tuner = ProductTuner::create(openStore());
    EXPECT_EQ(tuning(model).state, State::kOff);
    EXPECT_EQ(tuning(model).state, State::kOff);
    open_.tuner->measureNow(open_);
    EXPECT_EQ(tuning(model).state, State::kRecalled);
    open_.tuner->flush();
  }
  open_.tuner = ProductTuner::create(openStore());
  EXPECT_EQ(tuning(model).state, State::kRecalled);
  // Those of another driver's version are not those of this one.
  open_.gpu->factsForTest().identity[0] ^= 1;
  open_.tuner = ProductTuner::create(openStore());
  EXPECT_EQ(tuning(model).state, State::kOff);
}

TEST_F(ProductTunerTest, ThePartsThatWereFoundAreUsed) {
  const graph::Model model = hal::cts::convolutionModel(5);
  const auto plain = prepare(model, {});
  const Dispatch& product = productOf(*plain);
  {
    ProductParts parts(openStore());
    parts.keep(open_.gpu->facts(), productClassOf(product, *productShapeOf(product)), 1);
    parts.flush();
  }
  open_.tuner = ProductTuner::create(openStore());
  const auto prepared = prepare(model, tuned_);
  EXPECT_EQ(prepared->startReport().tuning.state, State::kRecalled);
  EXPECT_EQ(prepared->startReport().tuning.changedNodes, 1u);
  EXPECT_EQ(productOf(*prepared).constant, 1u);
  EXPECT_GT(productOf(*prepared).groups[0], product.groups[0]);
  // Not so where nothing is to be chosen by measuring.
  EXPECT_EQ(prepare(model, {})->startReport().tuning.state, State::kOff);
}

TEST_F(ProductTunerTest, AThreadMeasuresAfterTheFirstExecution) {
  const graph::Model model = hal::cts::convolutionModel(5);
  open_.tuner = ProductTuner::create();
  const auto prepared = prepare(model, tuned_);
  ASSERT_TRUE(computeModel(*prepared, model, {std::vector<uint8_t>(5 * 5 * 3 * sizeof(float))}));
  while (tuning(model).state == State::kOff)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  open_.tuner->stop();
}

TEST_F(ProductTunerTest, AThreadEndsWithTheLastModel) {
  const graph::Model model = hal::cts::convolutionModel(5);
  open_.tuner = ProductTuner::create();
  const auto prepared = prepare(model, tuned_);
  ASSERT_TRUE(computeModel(*prepared, model, {std::vector<uint8_t>(5 * 5 * 3 * sizeof(float))}));
  open_.tuner.reset();
}

TEST_F(ProductTunerTest, AShaderThatIsWrongInOtherPartsIsNotUsedInThem) {
  open_.answers = std::make_shared<KnownAnswers>();
  ASSERT_TRUE(open_.answers->check(open_, "convolution.f32"));
  open_.tuner = ProductTuner::create();
  const graph::Model model = hal::cts::convolutionModel(5);
  EXPECT_EQ(tuning(model).state, State::kOff);
  open_.gpu->functionsForTest().vkCmdDispatch = [](VkCommandBuffer, uint32_t, uint32_t, uint32_t) {
  };
  open_.tuner->measureNow(open_);
  EXPECT_EQ(tuning(model).changedNodes, 0u);
  EXPECT_EQ(
      open_.answers->wrongShaders(),
      (std::vector<std::string>{"convolution.f32 in parts of 2", "convolution.f32 in parts of 8"}));
}

TEST_F(ProductTunerTest, AnImplementationOnTheCpuIsNotMeasured) {
  open_.gpu->factsForTest().type = VK_PHYSICAL_DEVICE_TYPE_CPU;
  open_.tuner = ProductTuner::create();
  const graph::Model model = hal::cts::convolutionModel(5);
  EXPECT_EQ(tuning(model).state, State::kOff);
  open_.tuner->measureNow(open_);
  EXPECT_EQ(tuning(model).state, State::kOff);
}

TEST_F(ProductTunerTest, ManyWorkGroupsAreNotMadeMore) {
  const graph::Model model = hal::cts::convolutionModel(5);
  const auto prepared = prepare(model, {});
  Dispatch dispatch = productOf(*prepared);
  const Dispatch before = dispatch;
  GpuFacts facts = open_.gpu->facts();
  facts.maxGroups[0] = before.groups[0];
  EXPECT_FALSE(choosePart(1, facts, &dispatch));
  EXPECT_EQ(dispatch.constant, 0u);
  EXPECT_EQ(dispatch.groups, before.groups);
  EXPECT_FALSE(choosePart(kParts.size(), open_.gpu->facts(), &dispatch));
  EXPECT_TRUE(choosePart(2, facts, &dispatch));
  EXPECT_TRUE(choosePart(0, facts, &dispatch));
  EXPECT_EQ(dispatch.groups, before.groups);
}

}  // namespace
}  // namespace hearth::vulkan
