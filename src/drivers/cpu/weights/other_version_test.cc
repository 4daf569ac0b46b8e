// SPDX-License-Identifier: Apache-2.0
// A new version of a model takes over what an earlier one packed from the same constants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>
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
std::vector<uint8_t> constants(const std::vector<float>& factors, uint32_t width = kWidth) {
  const std::vector<float> biases(width);
  std::vector<uint8_t> bytes;
  const auto append = [&](const std::vector<float>& values) {
    const auto* const from = reinterpret_cast<const uint8_t*>(values.data());
    bytes.insert(bytes.end(), from, from + values.size() * sizeof(float));
  };
  for (const float factor : factors) {
    append(std::vector<float>(size_t{width} * width, factor / static_cast<float>(width)));
    append(biases);
  }
  return bytes;
}

// The layers behind a look-up of one row of a table, whose rows follow the layers in the pool.
constexpr uint32_t kRows = 3000;
std::shared_ptr<const graph::Model> looksUp(const memory::PoolRef& pool) {
  auto model =
      std::make_shared<graph::Model>(*layerChainOver(pool, {kWidth, kWidth, kWidth, kWidth}));
  graph::Subgraph& graph = model->main();
  const uint32_t row = graph.inputs[0];
  graph.operands[row].lifetime = graph::Lifetime::kTemporary;
  graph::Operand index;
  index.type = graph::OperandType::kTensorInt32;
  index.dimensions = {1};
  index.lifetime = graph::Lifetime::kSubgraphInput;
  graph::Operand table;
  table.dimensions = {kRows, kWidth};
  table.lifetime = graph::Lifetime::kConstantReference;
  table.location = {0, kLayers * kLayerBytes, uint64_t{kRows} * kWidth * sizeof(float)};
  const auto count = static_cast<uint32_t>(graph.operands.size());
  graph.operands.push_back(index);
  graph.operands.push_back(table);
  graph.operations.insert(graph.operations.begin(),
                          {graph::OperationType::kEmbeddingLookup, {count, count + 1}, {row}, ""});
  graph.inputs = {count};
  return model;
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
    const memory::PoolRef pool = file(constants(factors));
    return start(layerChainOver(pool, {kWidth, kWidth, kWidth, kWidth}),
                 std::vector<float>(kWidth, 1.0f), factors[0] * factors[1] * factors[2]);
  }
  // The same of a version with a table, all of whose values are `entry`.
  hal::StartReport start(const std::vector<float>& factors, float entry) {
    std::vector<uint8_t> bytes = constants(factors);
    const std::vector<float> table(size_t{kRows} * kWidth, entry);
    const auto* const first = reinterpret_cast<const uint8_t*>(table.data());
    bytes.insert(bytes.end(), first, first + table.size() * sizeof(float));
    return start(looksUp(file(bytes)), {std::bit_cast<float>(kRows / 2)},
                 entry * factors[0] * factors[1] * factors[2]);
  }
  memory::PoolRef file(const std::vector<uint8_t>& bytes) {
    const std::filesystem::path path =
        folder_.path() / "models" / (std::to_string(++versions_) + ".bin");
    cache::writeFile(path, bytes);
    return memory::Pool::openFile(path).value();
  }
  hal::StartReport start(const std::shared_ptr<const graph::Model>& model,
                         const std::vector<float>& input, float expected, size_t outputs = kWidth) {
    hal::PrepareOptions options;
    options.threads = 2;
    options.driverOptions = storeOptions().toTexts();
    const auto prepared = device_->prepareModel(model, options, hal::Cache());
    EXPECT_TRUE(prepared) << prepared.error().toString();
    if (!prepared) return {};
    EXPECT_THAT(runOnce(**prepared, input, outputs), Each(FloatNear(expected, 1e-3f)));
    store()->settle();
    return (*prepared)->startReport();
  }
  size_t segmentFiles() const {
    size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root() / "segments"))
      files += entry.is_regular_file() ? 1 : 0;
    return files;
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
    const hal::StartReport second = start({5, 3, 4});
    EXPECT_EQ(second.state, State::kCold);
    EXPECT_EQ(second.reason, "model changed");
    EXPECT_GE(second.mappedBytes, 2 * kWeightBytes);
    EXPECT_EQ(second.mappedBytes + packedBytes(second), packedBytes(first));
    // The last one.
    const hal::StartReport third = start({5, 3, 7});
    EXPECT_GE(third.mappedBytes, 2 * kWeightBytes);
    EXPECT_LT(packedBytes(third), 2 * kWeightBytes);
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

// Packings that share a segment, three of which a change leaves as they are.
TEST_F(OtherVersionTest, SmallPackingsAreTakenOverFromTheSegmentThatTheyShare) {
  constexpr uint32_t kNarrow = 120;
  constexpr uint64_t kBytes = uint64_t{kNarrow} * kNarrow * sizeof(float);
  const auto start = [&](const std::vector<float>& factors) {
    float product = 1;
    for (const float factor : factors) product *= factor;
    return this->start(layerChainOver(file(constants(factors, kNarrow)),
                                      std::vector<uint32_t>(factors.size() + 1, kNarrow)),
                       std::vector<float>(kNarrow, 1.0f), product, kNarrow);
  };
  EXPECT_GE(packedBytes(start({2, 3, 4, 1})), 4 * kBytes);
  EXPECT_EQ(segmentFiles(), 1u);
  const hal::StartReport second = start({5, 3, 4, 1});
  EXPECT_EQ(second.reason, "model changed");
  EXPECT_GE(second.mappedBytes, 3 * kBytes);
  EXPECT_LT(packedBytes(second), 2 * kBytes);
  EXPECT_EQ(segmentFiles(), 2u);
  // From the segments of both.
  const hal::StartReport third = start({5, 3, 4, 7});
  EXPECT_GE(third.mappedBytes, 3 * kBytes);
  EXPECT_LT(packedBytes(third), 2 * kBytes);
  for (const auto& factors : {std::vector<float>{2, 3, 4, 1}, {5, 3, 4, 1}, {5, 3, 4, 7}}) {
    const hal::StartReport again = start(factors);
    EXPECT_EQ(again.state, State::kWarm) << again.reason;
    EXPECT_EQ(packedBytes(again), 0u);
  }
}

// Other shapes of activations, and constants that lie elsewhere in the file.
TEST_F(OtherVersionTest, AnotherModelOfTheSameConstantsStartsWarm) {
  constexpr uint32_t kNarrow = 120;
  std::vector<uint8_t> bytes = constants({2, 3, 4}, kNarrow);
  const std::vector<uint32_t> widths(4, kNarrow);
  const std::vector<float> ones(kNarrow, 1.0f);
  const hal::StartReport first = start(layerChainOver(file(bytes), widths), ones, 24, kNarrow);
  EXPECT_EQ(first.state, State::kCold);
  bytes.insert(bytes.begin(), 192, uint8_t{7});
  const auto moved = std::make_shared<graph::Model>(*layerChainOver(file(bytes), widths));
  for (graph::Operand& operand : moved->main().operands) {
    if (operand.isConstant() && operand.lifetime == graph::Lifetime::kConstantReference)
      operand.location.offset += 192;
    else if (operand.dimensions.size() == 2)
      operand.dimensions[0] = 2;
  }
  const std::vector<float> rows(size_t{2} * kNarrow, 1.0f);
  const hal::StartReport second = start(moved, rows, 24, size_t{2} * kNarrow);
  EXPECT_EQ(second.state, State::kWarm) << second.reason;
  EXPECT_EQ(packedBytes(second), 0u);
  EXPECT_EQ(second.mappedBytes, packedBytes(first));
  EXPECT_EQ(segmentFiles(), 1u);
}

// A table is read in place, so nothing that is packed depends on it.
TEST_F(OtherVersionTest, AnotherTableOfLookUpsIsTheSameModel) {
  const uint64_t tableBytes = uint64_t{kRows} * kWidth * sizeof(float);
  EXPECT_EQ(start({2, 3, 4}, 1).state, State::kCold);
  const hal::StartReport other = start({2, 3, 4}, 5);
  EXPECT_EQ(other.state, State::kWarm) << other.reason;
  EXPECT_EQ(packedBytes(other), 0u);
  EXPECT_LT(other.hashedBytes, kLayers * kLayerBytes + tableBytes / 4);
  const hal::StartReport changed = start({2, 3, 6}, 5);
  EXPECT_EQ(changed.reason, "model changed");
  EXPECT_GE(changed.mappedBytes, kWeightBytes);
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

// What a new version takes over is checked in the background like what a warm start maps.
TEST_F(OtherVersionTest, WrongBytesThatWereTakenOverAreFoundAndPackedAgain) {
  for (const auto preparation : {hal::Preparation::kWhole, hal::Preparation::kJustInTime}) {
    std::filesystem::remove_all(root());
    start({2, 3, 4});
    for (const auto& file : std::filesystem::recursive_directory_iterator(root() / "segments")) {
      if (!file.is_regular_file() || file.file_size() < kWeightBytes) continue;
      std::vector<uint8_t> bytes = cache::readFile(file.path());
      bytes[kWeightBytes / 2 + 3] ^= 0x40;  // the exponent of a weight
      std::filesystem::permissions(file.path(), std::filesystem::perms(0600));
      cache::writeFile(file.path(), bytes);
      std::filesystem::permissions(file.path(), std::filesystem::perms(0400));
    }
    hal::PrepareOptions options;
    options.preparation = preparation;
    options.driverOptions = storeOptions().toTexts();
    const memory::PoolRef pool = file(constants({5, 3, 4}));
    const auto prepared = device_->prepareModel(
        layerChainOver(pool, {kWidth, kWidth, kWidth, kWidth}), options, hal::Cache());
    ASSERT_TRUE(prepared) << prepared.error().toString();
    const std::vector<float> input(kWidth, 1.0f);
    std::vector<float> output = runOnce(**prepared, input, kWidth);
    EXPECT_GE((*prepared)->startReport().mappedBytes, kWeightBytes);
    // Nobody asks for the check, or waits for it.
    const auto isRight = [&] {
      return testing::Matches(Each(FloatNear(60, 1e-3f)))(output);
    };
    const auto begin = std::chrono::steady_clock::now();
    while (!isRight() && std::chrono::steady_clock::now() - begin < std::chrono::minutes(1)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      output = runOnce(**prepared, input, kWidth);
    }
    EXPECT_TRUE(isRight());
    EXPECT_GE(store()->counters().segmentsCorrupt, 1u);
    store()->settle();
  }
}

}  // namespace
}  // namespace hearth::cpu
