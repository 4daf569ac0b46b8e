// SPDX-License-Identifier: Apache-2.0
// A new version of a model takes over what an earlier one packed from the same constants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "cache/open_store.h"
#include "cache/testing/store_test_util.h"
#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/platform/host_facts.h"
#include "drivers/cpu/testing/layer_chain.h"
#include "drivers/cpu/testing/run_once.h"

namespace hearth::cpu {
namespace {

using State = hal::StartReport::State;
using ::testing::Each;
using ::testing::FloatNear;

// Three layers of 4 MiB, one after the other in the file.
constexpr uint32_t kWidth = 1024;
constexpr size_t kLayers = 3;
constexpr size_t kWeightBytes = size_t{kWidth} * kWidth * sizeof(float);
constexpr size_t kLayerBytes = kWeightBytes + kWidth * sizeof(float);

// Layers that multiply the sum of their inputs, all equal, by these numbers. The biases are 0.
std::vector<uint8_t> constants(const std::vector<float>& factors) {
  std::vector<uint8_t> bytes(kLayers * kLayerBytes);
  for (size_t i = 0; i < kLayers; ++i) {
    const std::vector<float> weights(kWeightBytes / sizeof(float), factors[i] / kWidth);
    std::memcpy(bytes.data() + i * kLayerBytes, weights.data(), kWeightBytes);
  }
  return bytes;
}

class OtherVersionTest : public cache::StoreTest {
 protected:
  OtherVersionTest() { std::filesystem::create_directory(folder_.path() / "models"); }

  cache::StoreOptions storeOptions() const {
    cache::StoreOptions options = this->options();
    options.mode = mode_;
    if (isBundle_) options.bundle = folder_.path() / "model.bundle";
    return options;
  }
  std::shared_ptr<cache::SegmentStore> store() const {
    cache::StoreOptions same = storeOptions();
    same.fingerprint = storeFingerprint();
    return cache::openSegmentStore(same);
  }
  // A start of a version, as in a process of its own, which computes the product of its factors.
  hal::StartReport start(const std::vector<float>& factors) {
    const std::filesystem::path path =
        folder_.path() / "models" / (std::to_string(++versions_) + ".bin");
    cache::writeFile(path, constants(factors));
    hal::PrepareOptions options;
    options.threads = 2;
    options.driverOptions = storeOptions().toTexts();
    hal::StartReport report;
    {
      const auto prepared = device_->prepareModel(
          layerChainOver(memory::Pool::openFile(path).value(), {kWidth, kWidth, kWidth, kWidth}),
          options, hal::Cache());
      EXPECT_TRUE(prepared) << prepared.error().toString();
      if (!prepared) return {};
      EXPECT_THAT(runOnce(**prepared, std::vector<float>(kWidth, 1.0f), kWidth),
                  Each(FloatNear(factors[0] * factors[1] * factors[2], 1e-3f)));
      store()->settle();
      report = (*prepared)->startReport();
    }
    return report;
  }
  static uint64_t packedBytes(const hal::StartReport& report) {
    uint64_t sum = 0;
    for (const auto& [kind, bytes] : report.packedBytes) sum += bytes;
    return sum;
  }

  cache::StoreMode mode_ = cache::StoreMode::kReadWrite;
  bool isBundle_ = false;
  int versions_ = 0;
  std::shared_ptr<hal::Device> device_ = createCpuDevice();
};

TEST_F(OtherVersionTest, OnlyWhatChangedIsPackedAgain) {
  for (const auto mode : {cache::StoreMode::kReadWrite, cache::StoreMode::kStrict}) {
    mode_ = mode;
    std::filesystem::remove_all(root());
    const hal::StartReport first = start({2, 3, 4});
    EXPECT_EQ(first.mappedBytes, 0u);
    EXPECT_GE(packedBytes(first), kLayers * kWeightBytes);
    // The first layer's beginning: the second begins within the MiB in which the first ends, so a
    // change of the first one's end would count for both.
    const hal::StartReport second = start({5, 3, 4});
    EXPECT_EQ(second.state, State::kCold);
    EXPECT_EQ(second.reason, "model changed");
    EXPECT_GE(second.mappedBytes, kWeightBytes);
    EXPECT_LE(second.mappedBytes + packedBytes(second), packedBytes(first));
    // The last one.
    const hal::StartReport third = start({5, 3, 7});
    EXPECT_GE(third.mappedBytes, kWeightBytes);
    EXPECT_LT(packedBytes(third), 3 * kWeightBytes);
    // Each version is warm when it comes again.
    for (const auto& factors : {std::vector<float>{2, 3, 4}, {5, 3, 4}, {5, 3, 7}}) {
      const hal::StartReport again = start(factors);
      EXPECT_EQ(again.state, State::kWarm) << again.reason;
      EXPECT_EQ(packedBytes(again), 0u);
    }
  }
}

TEST_F(OtherVersionTest, ABundleHasOneVersionOnly) {
  isBundle_ = true;
  EXPECT_EQ(start({2, 3, 4}).mappedBytes, 0u);
  const hal::StartReport second = start({5, 3, 4});
  EXPECT_EQ(second.mappedBytes, 0u);
  EXPECT_GE(packedBytes(second), kLayers * kWeightBytes);
}

// What the store says of an earlier version may be gone or damaged.
TEST_F(OtherVersionTest, SegmentsThatAreGoneOrWrongArePackedAgain) {
  for (const bool areGone : {true, false}) {
    std::filesystem::remove_all(root());
    start({2, 3, 4});
    for (const auto& file : std::filesystem::recursive_directory_iterator(root() / "segments")) {
      if (!file.is_regular_file()) continue;
      if (areGone)
        std::filesystem::remove(file.path());
      else
        std::filesystem::resize_file(file.path(), file.file_size() / 2);
    }
    const hal::StartReport second = start({5, 3, 4});
    EXPECT_EQ(second.mappedBytes, 0u);
    EXPECT_GE(packedBytes(second), kLayers * kWeightBytes);
    EXPECT_EQ(start({5, 3, 4}).state, State::kWarm);
  }
}

}  // namespace
}  // namespace hearth::cpu
