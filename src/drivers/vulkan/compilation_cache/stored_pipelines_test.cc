// SPDX-License-Identifier: Apache-2.0
// Starts without a compilation cache, whose pipelines the weight store keeps.
#include "drivers/vulkan/compilation_cache/stored_pipelines.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "cache/open_store.h"
#include "cache/store/store_facts.h"
#include "cache/testing/store_test_util.h"
#include "drivers/vulkan/prepared_model.h"
#include "drivers/vulkan/testing/caching_driver.h"
#include "drivers/vulkan/testing/validated_device.h"
#include "hal/cts/model_builder.h"

namespace hearth::vulkan {
namespace {

using State = hal::StartReport::State;

class StoredPipelinesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto gpu = Gpu::open(validatedOptions());
    if (!gpu && gpu.error().code() == ErrorCode::kUnavailableDevice)
      GTEST_SKIP() << gpu.error().toString();
    ASSERT_TRUE(gpu) << gpu.error().toString();
    gpu_ = *std::move(gpu);
    driver_.emplace(gpu_);
    options_.path = folder_.path() / "store";
  }

  // As in a process that has compiled nothing yet.
  OpenGpu fresh() const {
    const auto openStore = [options = options_] {
      return cache::openSegmentStore(options);
    };
    return {gpu_,
            *Pipelines::create(gpu_, StoredPipelines::create(gpu_->facts(), options_, openStore))};
  }
  // A start of a process that ends then.
  hal::StartReport start() {
    driver_->given.clear();
    const OpenGpu open = fresh();
    const auto prepared = VulkanPreparedModel::create(open, hal::cts::convolutionModel(5), {}, {});
    EXPECT_TRUE(prepared) << prepared.error().toString();
    open.pipelines->flushStore();
    return prepared ? (*prepared)->startReport() : hal::StartReport();
  }
  std::filesystem::path file() const {
    return std::filesystem::path(options_.path) / cache::kPipelinesFile;
  }

  cache::TempFolder folder_{cache::TempFolder::Place::kMemory};
  cache::StoreOptions options_;
  std::shared_ptr<Gpu> gpu_;
  std::optional<CachingDriver> driver_;
};

TEST_F(StoredPipelinesTest, TheNextProcessCompilesNothing) {
  const hal::StartReport first = start();
  EXPECT_EQ(first.state, State::kUncached);
  EXPECT_EQ(first.reason, "the weight store has no machine code of 1 of its 1 shaders");
  EXPECT_TRUE(driver_->given.empty());
  const hal::StartReport second = start();
  EXPECT_EQ(second.state, State::kWarm);
  EXPECT_EQ(second.reason, "");
  EXPECT_EQ(driver_->given, (std::vector<std::vector<uint8_t>>{driver_->data}));
}

TEST_F(StoredPipelinesTest, ChangedBytesAreNeverShownToVulkan) {
  start();
  const std::vector<uint8_t> right = cache::readFile(file());
  std::mt19937 random(41);
  for (int i = 0; i < 20; ++i) {
    std::vector<uint8_t> wrong = right;
    wrong[random() % wrong.size()] ^= static_cast<uint8_t>(1u << random() % 8);
    cache::writeFile(file(), wrong);
    EXPECT_EQ(start().state, State::kUncached);
    EXPECT_TRUE(driver_->given.empty());
    // It has written them anew.
    EXPECT_EQ(start().state, State::kWarm);
  }
  for (const size_t size : {size_t{0}, right.size() / 2, right.size() - 1}) {
    cache::writeFile(file(), std::vector(right.begin(), right.begin() + static_cast<long>(size)));
    EXPECT_EQ(start().state, State::kUncached);
    EXPECT_TRUE(driver_->given.empty());
  }
}

TEST_F(StoredPipelinesTest, EachGpuHasItsOwn) {
  start();
  gpu_->factsForTest().identity[0] ^= 1;
  EXPECT_EQ(start().state, State::kUncached);
  EXPECT_TRUE(driver_->given.empty());
  EXPECT_EQ(start().state, State::kWarm);
  gpu_->factsForTest().identity[0] ^= 1;
  EXPECT_EQ(start().state, State::kWarm);
}

TEST_F(StoredPipelinesTest, WhatVulkanRefusesIsCompiledAndWrittenAnew) {
  start();
  driver_->refuses = true;
  driver_->data.back() ^= 1;
  EXPECT_EQ(start().state, State::kUncached);
  EXPECT_EQ(driver_->given.size(), 1u);
  driver_->refuses = false;
  EXPECT_EQ(start().state, State::kWarm);
  EXPECT_EQ(driver_->given, (std::vector<std::vector<uint8_t>>{driver_->data}));
}

TEST_F(StoredPipelinesTest, WithoutMachineCodeNothingIsKept) {
  driver_->data.resize(sizeof(VkPipelineCacheHeaderVersionOne));
  EXPECT_EQ(start().state, State::kUncached);
  EXPECT_EQ(start().state, State::kUncached);
  EXPECT_TRUE(driver_->given.empty());
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(StoredPipelinesTest, AStoreThatIsOffOrOnlyReadGetsNothing) {
  options_.mode = cache::StoreMode::kOff;
  start();
  EXPECT_FALSE(std::filesystem::exists(options_.path));
  options_.mode = cache::StoreMode::kReadWrite;
  start();
  const std::vector<uint8_t> before = cache::readFile(file());
  options_.mode = cache::StoreMode::kReadOnly;
  EXPECT_EQ(start().state, State::kWarm);
  gpu_->factsForTest().identity[0] ^= 1;
  EXPECT_EQ(start().state, State::kUncached);
  EXPECT_EQ(cache::readFile(file()), before);
}

}  // namespace
}  // namespace hearth::vulkan
