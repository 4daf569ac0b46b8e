// SPDX-License-Identifier: Apache-2.0
// This driver as a caching driver.
#include "drivers/vulkan/compilation_cache/model_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cache/compilation/cache_files.h"
#include "cache/testing/store_test_util.h"
#include "drivers/vulkan/prepared_model.h"
#include "drivers/vulkan/testing/caching_driver.h"
#include "drivers/vulkan/testing/test_gpu.h"
#include "hal/cts/model_builder.h"

namespace hearth::vulkan {
namespace {

namespace fs = std::filesystem;

class VulkanModelCacheTest : public testing::Test {
 protected:
  VulkanModelCacheTest() { ::setenv("XDG_STATE_HOME", (root() / "state").c_str(), 1); }
  ~VulkanModelCacheTest() override { ::unsetenv("XDG_STATE_HOME"); }
  void SetUp() override {
    gpu_ = openTestGpu();
    if (gpu_ == nullptr) return;
    driver_.emplace(gpu_);
  }

  const fs::path& root() const { return folder_.path(); }
  fs::path modelFile() const { return root() / "model"; }
  fs::path dataFile() const { return root() / "data"; }
  hal::Cache files(uint8_t token = 1) const {
    const auto open = [](const fs::path& path) {
      return base::Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    };
    hal::Cache cache;
    cache.modelFiles.push_back(open(modelFile()));
    cache.dataFiles.push_back(open(dataFile()));
    cache.token = {token};
    return cache;
  }

  // As in a process that has compiled nothing yet.
  OpenGpu fresh() { return {gpu_, *Pipelines::create(gpu_)}; }
  Result<std::shared_ptr<VulkanPreparedModel>> save() {
    return VulkanPreparedModel::create(fresh(), hal::cts::convolutionModel(kSide), {}, files());
  }
  Result<std::shared_ptr<VulkanPreparedModel>> restore(uint8_t token = 1) {
    return restoreWith({}, token);
  }
  Result<std::shared_ptr<VulkanPreparedModel>> restoreWith(const hal::PrepareOptions& options,
                                                           uint8_t token = 1) {
    HEARTH_ASSIGN(auto saved, loadModel(gpu_->facts(), files(token)));
    return VulkanPreparedModel::createSaved(fresh(), options,
                                            std::get<SavedModel>(std::move(saved)), files(token));
  }
  static std::vector<float> outputOf(VulkanPreparedModel& prepared) {
    std::vector<float> input(kSide * kSide * 3), output(kSide * kSide * 4);
    std::iota(input.begin(), input.end(), 0.0f);
    hal::Request request;
    for (std::vector<float>* values : {&input, &output}) {
      hal::Argument argument;
      argument.kind = hal::Argument::Kind::kPointer;
      argument.pointer = values->data();
      argument.length = values->size() * sizeof(float);
      (values == &input ? request.inputs : request.outputs).push_back(std::move(argument));
    }
    const auto execution = prepared.createExecution(std::move(request));
    EXPECT_TRUE(execution) << execution.error().toString();
    if (!execution) return {};
    const hal::ExecutionResult result = (*execution)->compute({});
    EXPECT_TRUE(result.status) << result.status.error().toString();
    return output;
  }
  // Expects that nothing in the files is interpreted, least of all by the driver of the GPU.
  void expectMiss(const std::string& what) {
    driver_->given.clear();
    const uint64_t trusted = cache::trustedCacheBytes();
    EXPECT_FALSE(restore()) << what;
    EXPECT_EQ(cache::trustedCacheBytes(), trusted) << what;
    EXPECT_TRUE(driver_->given.empty()) << what;
  }

  static constexpr uint32_t kSide = 5;
  cache::TempFolder folder_{cache::TempFolder::Place::kMemory};
  std::shared_ptr<Gpu> gpu_;
  std::optional<CachingDriver> driver_;
};

TEST_F(VulkanModelCacheTest, AWarmStartGivesTheSavedMachineCodeToVulkan) {
  const auto saved = save();
  ASSERT_TRUE(saved) << saved.error().toString();
  EXPECT_EQ((*saved)->startReport().cacheProblem, "");
  EXPECT_EQ((*saved)->startReport().state, hal::StartReport::State::kCold);
  EXPECT_TRUE(driver_->given.empty());
  const auto restored = restore();
  ASSERT_TRUE(restored) << restored.error().toString();
  ASSERT_EQ(driver_->given.size(), 1u);
  EXPECT_EQ(driver_->given[0], driver_->data);
  const hal::StartReport report = (*restored)->startReport();
  EXPECT_EQ(report.state, hal::StartReport::State::kWarm);
  EXPECT_TRUE(report.packedBytes.empty());
  EXPECT_EQ(outputOf(**restored), outputOf(**saved));
  EXPECT_EQ(fs::file_size(dataFile()), (*restored)->plan().constantBytes);
}

TEST_F(VulkanModelCacheTest, DamagedFilesAreNeverShownToVulkan) {
  const auto saved = save();
  ASSERT_TRUE(saved);
  std::mt19937 random(41);
  for (const fs::path& path : {modelFile(), dataFile()}) {
    const std::vector<uint8_t> right = cache::readFile(path);
    for (int i = 0; i < 20; ++i) {
      std::vector<uint8_t> wrong = right;
      wrong[random() % wrong.size()] ^= static_cast<uint8_t>(1u << random() % 8);
      cache::writeFile(path, wrong);
      expectMiss("a changed bit of " + path.string());
    }
    for (const size_t size : {size_t{0}, right.size() / 2, right.size() - 1}) {
      cache::writeFile(path, std::vector(right.begin(), right.begin() + static_cast<long>(size)));
      expectMiss("a part of " + path.string());
    }
    cache::writeFile(path, std::vector<uint8_t>(right.size(), 0));
    expectMiss("zeros in place of " + path.string());
    cache::writeFile(path, right);
    EXPECT_TRUE(restore());
  }
  EXPECT_FALSE(restore(2)) << "another token";
  // The next preparation writes them anew.
  cache::writeFile(modelFile(), std::vector<uint8_t>(1000, 1));
  ASSERT_TRUE(save());
  const auto restored = restore();
  ASSERT_TRUE(restored) << restored.error().toString();
  EXPECT_EQ(outputOf(**restored), outputOf(**saved));
}

TEST_F(VulkanModelCacheTest, FilesOfAnotherGpuOrDriverAreNotKnown) {
  ASSERT_TRUE(save());
  GpuFacts facts = gpu_->facts();
  EXPECT_TRUE(loadModel(facts, files()));
  facts.identity[0] ^= 1;
  const auto loaded = loadModel(facts, files());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code(), ErrorCode::kNotFound);
}

TEST_F(VulkanModelCacheTest, DataOfAnotherDeviceIsNotGivenToVulkan) {
  const PipelineKey key{"unary.f32", 0};
  std::vector<uint8_t> data = driver_->data;
  for (const size_t size : {size_t{0}, size_t{31}}) {
    const OpenGpu open = fresh();
    EXPECT_TRUE(
        open.pipelines->restore({key, {data.begin(), data.begin() + static_cast<long>(size)}}));
  }
  for (size_t at = 0; at < sizeof(VkPipelineCacheHeaderVersionOne); ++at) {
    const OpenGpu open = fresh();
    data[at] ^= 1;
    EXPECT_TRUE(open.pipelines->restore({key, data}));
    EXPECT_TRUE(driver_->given.empty()) << at;
    data[at] ^= 1;
  }
}

TEST_F(VulkanModelCacheTest, PipelinesThatVulkanRefusesAreCompiled) {
  ASSERT_TRUE(save());
  driver_->refuses = true;
  const auto restored = restore();
  ASSERT_TRUE(restored) << restored.error().toString();
  EXPECT_EQ(driver_->given.size(), 1u);
  EXPECT_EQ(outputOf(**restored)[0], outputOf(**save())[0]);
}

TEST_F(VulkanModelCacheTest, WithoutAPipelineCacheNothingIsKept) {
  gpu_->functionsForTest().vkCreatePipelineCache = [](VkDevice, const VkPipelineCacheCreateInfo*,
                                                      const VkAllocationCallbacks*,
                                                      VkPipelineCache*) {
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  };
  const PipelineKey key{"unary.f32", 0};
  const OpenGpu open = fresh();
  EXPECT_TRUE(open.pipelines->find(key));
  EXPECT_TRUE(open.pipelines->save(key).data.empty());
}

TEST_F(VulkanModelCacheTest, ALimitOfActivationsHoldsForCachedModels) {
  ASSERT_TRUE(save());
  hal::PrepareOptions options;
  options.maxActivationBytes = 1;
  const auto restored = restoreWith(options);
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code(), ErrorCode::kOutOfMemory);
}

TEST_F(VulkanModelCacheTest, APlanIsReadAsItWasWritten) {
  const auto saved = save();
  ASSERT_TRUE(saved);
  const std::vector<SavedPipeline> pipelines = {{{"convolution.f32", 0}, {1, 2, 3}}};
  const std::vector<uint8_t> bytes = encodePlan((*saved)->plan(), pipelines, true);
  const auto parsed = parsePlan(bytes, gpu_->facts());
  ASSERT_TRUE(parsed) << parsed.error().toString();
  EXPECT_TRUE(parsed->isTuned);
  EXPECT_EQ(encodePlan(parsed->plan, parsed->pipelines, true), bytes);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parsePlan(std::span(bytes).first(size), gpu_->facts())) << size;
}

TEST_F(VulkanModelCacheTest, ATensorInAnotherHasAsManyBytes) {
  const auto saved = save();
  ASSERT_TRUE(saved);
  Plan plan = (*saved)->plan();
  plan.tensors.push_back(PlannedTensor(plan.tensors[0]));
  const auto right = parsePlan(encodePlan(plan, {}), gpu_->facts());
  EXPECT_TRUE(right) << right.error().toString();
  plan.tensors.back().bytes += 4;
  EXPECT_FALSE(parsePlan(encodePlan(plan, {}), gpu_->facts()));
}

}  // namespace
}  // namespace hearth::vulkan
