// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of starts from the weight store.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cache/open_store.h"
#include "cache/testing/store_test_util.h"
#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/platform/build_identity.h"
#include "drivers/cpu/testing/run_once.h"

namespace hearth::cpu {

using graph::Lifetime;
using graph::OperandType;
using graph::OperationType;
using State = hal::StartReport::State;

inline constexpr uint32_t kChannels = 64;
inline constexpr uint32_t kFilters = 512;  // 1.2 MB of weights with a 3x3 kernel
inline constexpr uint32_t kClasses = 40;
inline constexpr uint32_t kSide = 6;

// Places one constant after another in a file.
class ConstantFile {
 public:
  graph::DataLocation add(size_t count, uint32_t seed, float scale) {
    bytes_.resize((bytes_.size() + 63) / 64 * 64);
    const graph::DataLocation location{0, bytes_.size(), count * sizeof(float)};
    for (size_t i = 0; i < count; ++i) {
      seed = seed * 1664525u + 1013904223u;
      const float value = scale * (static_cast<float>(seed >> 8) / (1u << 24) - 0.5f);
      const auto* begin = reinterpret_cast<const uint8_t*>(&value);
      bytes_.insert(bytes_.end(), begin, begin + sizeof value);
    }
    return location;
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

// DEPTHWISE_CONV_2D, CONV_2D, FULLY_CONNECTED over `batch` pictures; weights from `seed`.
struct TestModel {
  std::vector<uint8_t> file;
  graph::Model model;  // without its pool

  explicit TestModel(uint32_t seed, uint32_t batch = 1) {
    ConstantFile constants;
    graph::Subgraph graph;
    const auto tensor = [&](graph::Dimensions dimensions, Lifetime lifetime) {
      graph::Operand operand;
      operand.dimensions = std::move(dimensions);
      operand.lifetime = lifetime;
      graph.operands.push_back(operand);
      return static_cast<uint32_t>(graph.operands.size() - 1);
    };
    const auto weights = [&](graph::Dimensions dimensions) {
      size_t count = 1;
      for (uint32_t dimension : dimensions) count *= dimension;
      const uint32_t index = tensor(std::move(dimensions), Lifetime::kConstantReference);
      graph.operands[index].location = constants.add(count, seed + index, 0.2f);
      return index;
    };
    const auto number = [&](int32_t value) {
      const uint32_t index = tensor({}, Lifetime::kConstantCopy);
      graph.operands[index].type = OperandType::kInt32;
      graph.operands[index].location = {0, model.constantBytes.size(), sizeof value};
      const auto* begin = reinterpret_cast<const uint8_t*>(&value);
      model.constantBytes.insert(model.constantBytes.end(), begin, begin + sizeof value);
      return index;
    };
    const uint32_t input = tensor({batch, kSide, kSide, kChannels}, Lifetime::kSubgraphInput);
    const uint32_t deep = tensor({batch, kSide, kSide, kChannels}, Lifetime::kTemporary);
    const uint32_t wide = tensor({batch, kSide, kSide, kFilters}, Lifetime::kTemporary);
    const uint32_t flat = tensor({batch, kSide * kSide * kFilters}, Lifetime::kTemporary);
    const uint32_t output = tensor({batch, kClasses}, Lifetime::kSubgraphOutput);
    const uint32_t depthwise = weights({1, 3, 3, kChannels});
    const uint32_t depthwiseBias = weights({kChannels});
    const uint32_t filter = weights({kFilters, 3, 3, kChannels});
    const uint32_t filterBias = weights({kFilters});
    const uint32_t matrix = weights({kClasses, kSide * kSide * kFilters});
    const uint32_t matrixBias = weights({kClasses});
    const uint32_t same = number(1);
    const uint32_t one = number(1);
    const uint32_t none = number(0);
    graph.operands[deep].dimensions[0] = batch;
    const uint32_t shape = tensor({2}, Lifetime::kConstantCopy);
    graph.operands[shape].type = OperandType::kTensorInt32;
    const int32_t to[2] = {static_cast<int32_t>(batch),
                           static_cast<int32_t>(kSide * kSide * kFilters)};
    graph.operands[shape].location = {0, model.constantBytes.size(), sizeof to};
    const auto* begin = reinterpret_cast<const uint8_t*>(to);
    model.constantBytes.insert(model.constantBytes.end(), begin, begin + sizeof to);
    graph.operations = {
        {OperationType::kDepthwiseConv2d,
         {input, depthwise, depthwiseBias, same, one, one, one, none},
         {deep},
         ""},
        {OperationType::kConv2d, {deep, filter, filterBias, same, one, one, one}, {wide}, ""},
        {OperationType::kReshape, {wide, shape}, {flat}, ""},
        {OperationType::kFullyConnected, {flat, matrix, matrixBias, none}, {output}, ""}};
    graph.inputs = {input};
    graph.outputs = {output};
    model.subgraphs.push_back(std::move(graph));
    file = constants.bytes();
  }
};

// A test with a store and a model file in a folder of its own.
class WeightSessionTest : public cache::StoreTest {
 protected:
  void SetUp() override {
    device_ = createCpuDevice();
    // Makes files look an hour older, so that their times prove them unchanged; the time of change
    // itself cannot be set.
    cache::changeFileFacts([](int, cache::FileFacts& facts) {
      constexpr int64_t kHour = int64_t{3600} * 1'000'000'000;
      for (int64_t* time : {&facts.modified, &facts.changed, &facts.born}) *time -= kHour;
    });
  }
  void TearDown() override { cache::changeFileFacts({}); }

  struct Start {
    hal::StartReport report;
    std::vector<float> output;
    memory::PoolRef pool;
    std::shared_ptr<hal::PreparedModel> prepared;
    uint32_t batch = 1;
    uint64_t packed() const {
      uint64_t bytes = 0;
      for (const auto& [kind, count] : report.packedBytes) bytes += count;
      return bytes;
    }
  };

  void save(const TestModel& test, const char* name = "model.bin") const {
    cache::writeFile(folder_.path() / name, test.file);
  }

  // Prepares the model over its saved file, but does not run it or take the report.
  Start prepareOnly(const TestModel& test, const cache::StoreOptions& options,
                    const char* name = "model.bin") {
    Start result;
    auto pool = memory::Pool::openFile(folder_.path() / name);
    EXPECT_TRUE(pool) << pool.error().toString();
    auto model = std::make_shared<graph::Model>(test.model);
    model->pools = {*pool};
    hal::PrepareOptions prepare;
    prepare.threads = 2;
    prepare.driverOptions = options.toTexts();
    prepare.preparation = preparation_;
    auto prepared = device_->prepareModel(model, prepare, hal::Cache());
    EXPECT_TRUE(prepared) << prepared.error().toString();
    if (!prepared) return result;
    result.prepared = *prepared;
    result.pool = *pool;
    result.batch = model->main().operands[0].dimensions[0];
    return result;
  }

  // The same, runs it, and takes the report.
  Start start(const TestModel& test, const cache::StoreOptions& options,
              const char* name = "model.bin") {
    Start result = prepareOnly(test, options, name);
    if (result.prepared == nullptr) return result;
    // Taking the report here waits for just-in-time work, which a program would not do.
    if (preparation_ == hal::Preparation::kJustInTime) result.output = runAgain(result);
    result.report = result.prepared->startReport();
    if (preparation_ == hal::Preparation::kWhole) result.output = runAgain(result);
    return result;
  }
  static std::vector<float> pictures(uint32_t batch) {
    std::vector<float> input(batch * kSide * kSide * kChannels);
    for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i % 97) / 97 - 0.4f;
    return input;
  }
  static std::vector<float> runAgain(const Start& start) {
    return runOnce(*start.prepared, pictures(start.batch), start.batch * kClasses);
  }
  Start start(const TestModel& test) { return start(test, options()); }

  // Starts for the first time, and waits until no start is in progress.
  std::vector<float> packed(const TestModel& test) {
    std::vector<float> output = start(test).output;
    settle();
    return output;
  }

  // Starts without a store.
  cache::StoreOptions off() const {
    cache::StoreOptions result = options();
    result.mode = cache::StoreMode::kOff;
    return result;
  }

  // Waits for background work.
  void settle() {
    cache::StoreOptions same = options();
    same.fingerprint = storeFingerprint();
    cache::openSegmentStore(same)->settle();
  }

  size_t mappedSegments() const {
    size_t mapped = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      mapped += line.find((root() / "segments").string()) != std::string::npos;
    return mapped;
  }

  // Background threads hold segments a moment longer, and mapped segments count as found.
  void waitUntilUnmapped() const {
    while (mappedSegments() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::vector<std::filesystem::path> segmentFiles() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root() / "segments"))
      if (entry.is_regular_file()) files.push_back(entry.path());
    return files;
  }

  std::shared_ptr<hal::Device> device_;
  hal::Preparation preparation_ = hal::Preparation::kWhole;
};

}  // namespace hearth::cpu
