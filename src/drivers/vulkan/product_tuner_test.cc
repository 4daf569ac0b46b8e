// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/product_tuner.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/crash_point.h"
#include "cache/open_store.h"
#include "cache/testing/store_test_util.h"
#include "drivers/vulkan/compilation_cache/model_cache.h"
#include "drivers/vulkan/dynamic_model.h"
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

// Without a weight store.
class TunedFilesTest : public ProductTunerTest {
 protected:
  TunedFilesTest() { ::setenv("XDG_STATE_HOME", (folder_.path() / "state").c_str(), 1); }
  ~TunedFilesTest() override { ::unsetenv("XDG_STATE_HOME"); }
  void SetUp() override {
    ProductTunerTest::SetUp();
    startAnew();
  }

  // As another process.
  void startAnew() {
    if (open_.gpu == nullptr) return;
    open_.pipelines = *Pipelines::create(open_.gpu);
    open_.tuner = ProductTuner::create();
  }
  std::filesystem::path modelFile() const { return folder_.path() / "model"; }
  hal::Cache files() const {
    hal::Cache cache;
    for (const char* const name : {"model", "data"})
      (cache.modelFiles.empty() ? cache.modelFiles : cache.dataFiles)
          .emplace_back(
              ::open((folder_.path() / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    cache.token = {1};
    return cache;
  }
  Result<std::shared_ptr<VulkanPreparedModel>> create() {
    return VulkanPreparedModel::create(open_, model_, tuned_, files());
  }
  Result<std::shared_ptr<VulkanPreparedModel>> restore() {
    HEARTH_ASSIGN(auto saved, loadModel(open_.gpu->facts(), files()));
    return VulkanPreparedModel::createSaved(open_, tuned_, std::get<SavedModel>(std::move(saved)),
                                            files());
  }
  static std::vector<uint8_t> image() { return std::vector<uint8_t>(5 * 5 * 3 * sizeof(float)); }

  const graph::Model model_ = hal::cts::convolutionModel(5);
};

TEST_F(TunedFilesTest, PartsThatAreFoundReachTheFiles) {
  const auto created = create();
  ASSERT_TRUE(created) << created.error().toString();
  EXPECT_EQ((*created)->startReport().tuning.state, State::kOff);
  const std::vector<uint8_t> before = cache::readFile(modelFile());
  open_.tuner->measureNow(open_);
  EXPECT_NE(cache::readFile(modelFile()), before);
  const uint32_t found = productOf(*prepare(model_, tuned_)).constant;
  for (int i = 0; i < 2; ++i) {
    startAnew();
    const auto restored = restore();
    ASSERT_TRUE(restored) << restored.error().toString();
    const hal::StartReport report = (*restored)->startReport();
    EXPECT_EQ(report.state, hal::StartReport::State::kWarm);
    EXPECT_EQ(report.tuning.state, State::kRecalled);
    EXPECT_EQ(productOf(**restored).constant, found);
    const auto expected = computeModel(**created, model_, {image()});
    const auto computed = computeModel(**restored, model_, {image()});
    ASSERT_TRUE(expected && computed);
    EXPECT_EQ(*computed, *expected);
    // Nothing is left to be measured, or to be written.
    const std::vector<uint8_t> written = cache::readFile(modelFile());
    open_.tuner->measureNow(open_);
    EXPECT_EQ(cache::readFile(modelFile()), written);
  }
}

TEST_F(TunedFilesTest, PartsThatAreKnownAreSavedAtOnce) {
  Plan plan = prepare(model_, {})->plan();
  for (Dispatch& dispatch : plan.dispatches)
    static_cast<void>(choosePart(1, open_.gpu->facts(), &dispatch));
  open_.tuner->adopt(open_.gpu->facts(), plan);
  ASSERT_TRUE(create());
  startAnew();
  const auto restored = restore();
  ASSERT_TRUE(restored) << restored.error().toString();
  EXPECT_EQ((*restored)->startReport().tuning.state, State::kRecalled);
  EXPECT_EQ(productOf(**restored).constant, 1u);
}

TEST_F(TunedFilesTest, AModelOfUntunedFilesWritesThem) {
  ASSERT_TRUE(create());
  startAnew();
  {
    const auto restored = restore();
    ASSERT_TRUE(restored) << restored.error().toString();
    EXPECT_EQ((*restored)->startReport().tuning.state, State::kOff);
    open_.tuner->measureNow(open_);
  }
  startAnew();
  const auto again = restore();
  ASSERT_TRUE(again) << again.error().toString();
  EXPECT_EQ((*again)->startReport().tuning.state, State::kRecalled);
}

TEST_F(TunedFilesTest, PlansForSeveralShapesAreWrittenAsWell) {
  hal::cts::ModelBuilder builder;
  const std::vector<float> weights(20, 1.0f);
  builder.operation(
      graph::OperationType::kFullyConnected,
      {builder.input(graph::OperandType::kTensorFloat32, {0, 4}),
       builder.constant(graph::OperandType::kTensorFloat32, {5, 4}, weights),
       builder.constant(graph::OperandType::kTensorFloat32, {5}, std::vector<float>(5, 0.0f)),
       builder.scalar(int32_t{0})},
      {builder.output(graph::OperandType::kTensorFloat32, {0, 5})});
  const auto model = std::make_shared<const graph::Model>(builder.model());
  hal::PrepareOptions options = tuned_;
  options.expectedInputs = {{3, 4}};
  const auto created = DynamicModel::create(open_, model, options, files());
  ASSERT_TRUE(created) << created.error().toString();
  EXPECT_EQ((*created)->startReport().tuning.state, State::kOff);
  open_.tuner->measureNow(open_);
  startAnew();
  auto saved = loadModel(open_.gpu->facts(), files());
  ASSERT_TRUE(saved) << saved.error().toString();
  const auto restored =
      DynamicModel::createSaved(open_, options, std::get<SavedFamily>(*std::move(saved)), files());
  ASSERT_TRUE(restored) << restored.error().toString();
  EXPECT_EQ((*restored)->startReport().tuning.state, State::kRecalled);
}

// What a process leaves that is killed while it writes the files again.
TEST_F(TunedFilesTest, ACrashLeavesFilesOfOneStageOrNone) {
  const auto created = create();
  ASSERT_TRUE(created) << created.error().toString();
  const std::vector<uint8_t> before = cache::readFile(modelFile());
  static std::filesystem::path model;
  static std::vector<std::vector<uint8_t>> left;
  model = modelFile();
  left.clear();
  base::watchCrashPoints([](std::string_view name) {
    if (name.starts_with("cache_files.")) left.push_back(cache::readFile(model));
  });
  open_.tuner->measureNow(open_);
  base::watchCrashPoints(nullptr);
  ASSERT_EQ(left.size(), 3u);
  const std::vector<uint8_t> after = left[2];
  EXPECT_NE(after, before);
  for (const std::vector<uint8_t>& each : left) {
    cache::writeFile(modelFile(), each);
    startAnew();
    const auto restored = restore();
    ASSERT_TRUE(restored) << restored.error().toString();
    EXPECT_EQ((*restored)->startReport().tuning.state,
              each == after ? State::kRecalled : State::kOff);
  }
  const auto half = static_cast<long>(after.size() / 2);
  cache::writeFile(modelFile(), std::vector(after.begin(), after.begin() + half));
  EXPECT_FALSE(restore());
  ASSERT_TRUE(create());
  EXPECT_TRUE(restore());
}

TEST_F(TunedFilesTest, FilesOfAModelThatIsGoneAreLeftAlone) {
  ASSERT_TRUE(create());
  const std::vector<uint8_t> before = cache::readFile(modelFile());
  open_.tuner->measureNow(open_);
  EXPECT_EQ(cache::readFile(modelFile()), before);
}

TEST_F(TunedFilesTest, FilesThatAnotherHasDamagedStaySo) {
  const auto created = create();
  ASSERT_TRUE(created) << created.error().toString();
  const std::vector<uint8_t> damaged(100, 1);
  cache::writeFile(modelFile(), damaged);
  open_.tuner->measureNow(open_);
  EXPECT_EQ(cache::readFile(modelFile()), damaged);
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
