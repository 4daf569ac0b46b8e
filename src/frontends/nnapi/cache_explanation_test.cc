// SPDX-License-Identifier: Apache-2.0
// What is explained of a cache is what the runtime does: the same parts, the same keys.
#include "runtime/cache_explanation.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "frontends/nnapi/testing/fake_device.h"
#include "hal/cts/model_builder.h"
#include "runtime/compilation.h"
#include "runtime/partitioned_model.h"

namespace hearth::nnapi {
namespace {

namespace fs = std::filesystem;

using graph::OperandType;
using graph::OperationType;
using runtime::CacheExplanation;

constexpr OperandType kFloats = OperandType::kTensorFloat32;

// relu(in + in) * in
graph::Model chain() {
  hal::cts::ModelBuilder builder;
  const uint32_t in = builder.input(kFloats, {2});
  const uint32_t sum = builder.temporary(kFloats, {2});
  const uint32_t positive = builder.temporary(kFloats, {2});
  builder.operation(OperationType::kAdd, {in, in, builder.scalar(0)}, {sum});
  builder.operation(OperationType::kRelu, {sum}, {positive});
  builder.operation(OperationType::kMul, {positive, in, builder.scalar(0)},
                    {builder.output(kFloats, {2})});
  return builder.model();
}

// (condition ? in + in : relu(in) * in) + in
graph::Model branches() {
  hal::cts::ModelBuilder builder;
  const uint32_t first = builder.beginSubgraph();
  uint32_t in = builder.input(kFloats, {2});
  builder.operation(OperationType::kAdd, {in, in, builder.scalar(0)},
                    {builder.output(kFloats, {2})});
  const uint32_t second = builder.beginSubgraph();
  in = builder.input(kFloats, {2});
  const uint32_t positive = builder.temporary(kFloats, {2});
  builder.operation(OperationType::kRelu, {in}, {positive});
  builder.operation(OperationType::kMul, {positive, in, builder.scalar(0)},
                    {builder.output(kFloats, {2})});
  builder.returnToMain();
  const uint32_t condition = builder.input(OperandType::kTensorBool8, {1});
  in = builder.input(kFloats, {2});
  const uint32_t chosen = builder.temporary(kFloats, {2});
  builder.operation(
      OperationType::kIf,
      {condition, builder.subgraphOperand(first), builder.subgraphOperand(second), in}, {chosen});
  builder.operation(OperationType::kAdd, {chosen, in, builder.scalar(0)},
                    {builder.output(kFloats, {2})});
  return builder.model();
}

class CacheExplanationTest : public testing::Test {
 protected:
  CacheExplanationTest() {
    std::string pattern = fs::temp_directory_path() / "hearth-explanation-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    request_.token = {7};
    request_.folder = folder_.string();
  }
  ~CacheExplanationTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  static std::shared_ptr<hal::Device> device(const char* name, std::set<OperationType> operations) {
    FakeDeviceOptions options{.name = name, .operations = std::move(operations)};
    options.cacheFiles = {2, 1};
    return std::make_shared<FakeDevice>(std::move(options));
  }

  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_))
      names.insert(entry.path().filename().string());
    return names;
  }

  Result<std::vector<CacheExplanation>> explain(const graph::Model& model) const {
    runtime::CompilationOptions options;
    options.devices = devices_;
    options.cache = std::make_shared<const runtime::CacheRequest>(request_);
    return runtime::Compilation::explainCaches(std::make_shared<const graph::Model>(model), options,
                                               runtime::DeviceManager(devices_));
  }

  std::vector<CacheExplanation> explained(const graph::Model& model) const {
    auto parts = explain(model);
    EXPECT_TRUE(parts) << parts.error().toString();
    return parts.value_or(std::vector<CacheExplanation>());
  }

  void expectSameKeys(const graph::Model& model, const std::vector<std::string>& devices) {
    for (const CacheExplanation& part : explained(model)) {
      EXPECT_EQ(part.state, CacheExplanation::State::kMiss);
      EXPECT_EQ(part.code, "no-files");
    }
    EXPECT_THAT(files(), testing::IsEmpty());
    runtime::PartitioningOptions options;
    options.cache = std::make_shared<const runtime::CacheRequest>(request_);
    ASSERT_TRUE(runtime::preparePartitioned(std::make_shared<const graph::Model>(model), devices_,
                                            options));
    std::set<std::string> named;
    std::vector<std::string> names;
    for (const CacheExplanation& part : explained(model)) {
      names.push_back(part.device);
      // The fake drivers do not explain their files.
      EXPECT_EQ(part.state, CacheExplanation::State::kUnknown);
      EXPECT_EQ(part.files.size(), 3u);
      for (const runtime::CacheFileState& file : part.files) {
        EXPECT_TRUE(file.exists) << file.name;
        EXPECT_TRUE(file.name.starts_with(part.key));
        EXPECT_TRUE(named.insert(file.name).second) << file.name;
      }
    }
    EXPECT_EQ(names, devices);
    EXPECT_EQ(named, files());
    fs::remove(folder_ / *named.begin());
    EXPECT_EQ(std::ranges::count(explained(model), "incomplete", &CacheExplanation::code), 1);
  }

  fs::path folder_;
  runtime::CacheRequest request_;
  std::vector<std::shared_ptr<hal::Device>> devices_;
};

TEST_F(CacheExplanationTest, OfAWholeModel) {
  devices_ = {device("all", {})};
  expectSameKeys(chain(), {"all"});
}

TEST_F(CacheExplanationTest, OfPartsOfAModel) {
  devices_ = {device("adds", {OperationType::kAdd}),
              device("others", {OperationType::kRelu, OperationType::kMul})};
  expectSameKeys(chain(), {"adds", "others"});
}

TEST_F(CacheExplanationTest, OfBranchesThatTheRuntimeFollows) {
  devices_ = {device("adds", {OperationType::kAdd}), device("multiplies", {OperationType::kMul}),
              device("others", {OperationType::kRelu})};
  expectSameKeys(branches(), {"adds", "others", "multiplies", "adds"});
}

TEST_F(CacheExplanationTest, AModelThatNoDeviceTakesIsAnError) {
  devices_ = {device("adds", {OperationType::kAdd})};
  const auto parts = explain(chain());
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().code(), ErrorCode::kUnsupported);
}

TEST_F(CacheExplanationTest, AMissingFolderIsAnError) {
  EXPECT_EQ(runtime::listCacheFolder((folder_ / "none").string(), devices_).error().code(),
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace hearth::nnapi
