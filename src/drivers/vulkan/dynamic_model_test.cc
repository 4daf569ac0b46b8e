// SPDX-License-Identifier: Apache-2.0
// Models with inputs of unknown dimensions.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cache/compilation/cache_files.h"
#include "cache/testing/store_test_util.h"
#include "drivers/vulkan/compilation_cache/cached_family.h"
#include "drivers/vulkan/compilation_cache/model_cache.h"
#include "drivers/vulkan/dynamic_model.h"
#include "drivers/vulkan/shared_constants.h"
#include "drivers/vulkan/testing/caching_driver.h"
#include "drivers/vulkan/testing/reference_test.h"
#include "drivers/vulkan/testing/test_gpu.h"
#include "hal/cts/model_builder.h"
#include "hal/interpreted_model.h"

namespace hearth::vulkan {
namespace {

using graph::OperandType;
using graph::OperationType;
using hal::cts::ModelBuilder;

constexpr OperandType kReal = OperandType::kTensorFloat32;

hal::Argument argumentOf(std::vector<uint8_t>& values, graph::Dimensions dimensions) {
  hal::Argument argument;
  argument.kind = hal::Argument::Kind::kPointer;
  argument.pointer = values.data();
  argument.length = values.size();
  argument.dimensions = std::move(dimensions);
  return argument;
}

class DynamicModelTest : public ReferenceTest {
 protected:
  // A convolution of images [batches, 6, 6, 3], and a layer over what it makes of each; [batches,
  // 5].
  graph::Model imageModel() {
    ModelBuilder builder;
    const uint32_t input = builder.input(kReal, {0, 6, 6, 3});
    const uint32_t filter = builder.constant(kReal, {4, 3, 3, 3}, realList(4 * 3 * 3 * 3));
    const uint32_t bias = builder.constant(kReal, {4}, realList(4));
    const uint32_t one = builder.scalar(int32_t{1});
    const uint32_t none = builder.scalar(int32_t{0});
    const uint32_t features = builder.temporary(kReal, {0, 6, 6, 4});
    builder.operation(OperationType::kConv2d, {input, filter, bias, one, one, one, none},
                      {features});
    const std::vector<int32_t> shape = {-1, 6 * 6 * 4};
    const uint32_t rows = builder.temporary(kReal, {0, 6 * 6 * 4});
    builder.operation(OperationType::kReshape,
                      {features, builder.constant(OperandType::kTensorInt32, {2}, shape)}, {rows});
    const uint32_t weights = builder.constant(kReal, {5, 6 * 6 * 4}, realList(5 * 6 * 6 * 4));
    const uint32_t biases = builder.constant(kReal, {5}, realList(5));
    const uint32_t output = builder.output(kReal, {0, 5});
    builder.operation(OperationType::kFullyConnected, {rows, weights, biases, none}, {output});
    return builder.model();
  }

  std::vector<float> realList(size_t count) {
    const std::vector<uint8_t> stored = reals(count);
    std::vector<float> values(count);
    std::memcpy(values.data(), stored.data(), stored.size());
    return values;
  }

  static std::vector<float> run(hal::PreparedModel& prepared, uint32_t batches,
                                std::vector<uint8_t> images) {
    std::vector<uint8_t> result(size_t{batches} * 5 * sizeof(float));
    hal::Request request;
    request.inputs.push_back(argumentOf(images, {batches, 6, 6, 3}));
    request.outputs.push_back(argumentOf(result, {batches, 5}));
    const auto execution = prepared.createExecution(std::move(request));
    EXPECT_TRUE(execution) << execution.error().toString();
    if (!execution) return {};
    const hal::ExecutionResult computed = (*execution)->compute({});
    EXPECT_TRUE(computed.status) << computed.status.error().toString();
    std::vector<float> values(result.size() / sizeof(float));
    std::memcpy(values.data(), result.data(), result.size());
    return values;
  }
};

TEST_F(DynamicModelTest, EachBatchIsComputedOnTheGpu) {
  const auto model = std::make_shared<const graph::Model>(imageModel());
  const auto supported = device_->supportedOperations(*model);
  ASSERT_TRUE(supported);
  for (const hal::OperationSupport& support : *supported)
    EXPECT_TRUE(support.supported) << support.reason;
  const auto prepared = device_->prepareModel(model, {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  const auto reference =
      hal::prepareInterpreted(model, {}, nullptr, "", nullptr, ops::KernelSet::kReference);
  ASSERT_TRUE(reference);
  for (const uint32_t batches : {1u, 4u, 2u, 1u, 4u}) {
    const std::vector<uint8_t> images = reals(size_t{batches} * 6 * 6 * 3);
    const std::vector<float> computed = run(**prepared, batches, images);
    const std::vector<float> expected = run(**reference, batches, images);
    ASSERT_EQ(computed.size(), expected.size());
    for (size_t i = 0; i < computed.size(); ++i)
      EXPECT_NEAR(computed[i], expected[i], 1e-3f) << batches;
  }
  EXPECT_EQ((*prepared)->startReport().shapes, 3u);
}

// Of images with 64 rows the slice has none.
TEST_F(DynamicModelTest, ATrialWithoutElementsTellsNothing) {
  const auto list = [](ModelBuilder& builder, std::vector<int32_t> values) {
    return builder.constant(OperandType::kTensorInt32, {4}, values);
  };
  ModelBuilder builder;
  const uint32_t input = builder.input(kReal, {0, 0, 0, 0});
  const uint32_t none = builder.scalar(int32_t{0});
  const uint32_t rows = builder.temporary(kReal, {});
  builder.operation(OperationType::kStridedSlice,
                    {input, list(builder, {0, 100, 0, 0}), list(builder, {1, 110, 3, 2}),
                     list(builder, {1, 1, 1, 1}), none, none, none},
                    {rows});
  builder.operation(OperationType::kNeg, {rows}, {builder.output(kReal, {})});
  const auto model = std::make_shared<const graph::Model>(builder.model());
  const auto supported = device_->supportedOperations(*model);
  ASSERT_TRUE(supported) << supported.error().toString();
  for (const hal::OperationSupport& support : *supported)
    EXPECT_TRUE(support.supported) << support.reason;
  const auto prepared = device_->prepareModel(model, {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  const graph::Dimensions shape = {1, 120, 3, 2};
  std::vector<uint8_t> images = reals(size_t{120} * 3 * 2);
  std::vector<uint8_t> result(size_t{10} * 3 * 2 * sizeof(float));
  hal::Request request;
  request.inputs.push_back(argumentOf(images, shape));
  request.outputs.push_back(argumentOf(result, {1, 10, 3, 2}));
  const auto execution = (*prepared)->createExecution(std::move(request));
  ASSERT_TRUE(execution) << execution.error().toString();
  ASSERT_TRUE((*execution)->compute({}).status);
  std::vector<float> values(images.size() / sizeof(float)), made(result.size() / sizeof(float));
  std::memcpy(values.data(), images.data(), images.size());
  std::memcpy(made.data(), result.data(), result.size());
  for (size_t i = 0; i < made.size(); ++i) EXPECT_EQ(made[i], -values[size_t{100} * 3 * 2 + i]);
}

// As that of a part of a divided model, whose inputs have more unknown dimensions than the whole.
TEST_F(DynamicModelTest, ATrialThatIsTooLargeForTheGpuTellsNothing) {
  ModelBuilder builder;
  builder.operation(OperationType::kFullyConnected,
                    {builder.input(kReal, {0, 0, 8}), builder.constant(kReal, {5, 8}, realList(40)),
                     builder.constant(kReal, {5}, realList(5)), builder.scalar(int32_t{0})},
                    {builder.output(kReal, {0, 5})});
  const auto model = std::make_shared<const graph::Model>(builder.model());
  OpenGpu open;
  open.gpu = openTestGpu();
  open.gpu->factsForTest().maxGroups[0] = 1;
  open.pipelines = *Pipelines::create(open.gpu);
  const auto prepared = DynamicModel::create(open, model, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  std::vector<uint8_t> rows = reals(size_t{2} * 8), result(size_t{2} * 5 * sizeof(float));
  hal::Request request;
  request.inputs.push_back(argumentOf(rows, {1, 2, 8}));
  request.outputs.push_back(argumentOf(result, {2, 5}));
  const auto execution = (*prepared)->createExecution(std::move(request));
  ASSERT_TRUE(execution) << execution.error().toString();
  EXPECT_TRUE((*execution)->compute({}).status);
  EXPECT_EQ((*prepared)->startReport().shapes, 1u);
}

// The weights take multiples of 7.
TEST_F(DynamicModelTest, ATrialOfManyDimensionsIsSmall) {
  ModelBuilder builder;
  const uint32_t rows = builder.temporary(kReal, {0, 7});
  const std::vector<int32_t> shape = {-1, 7};
  builder.operation(OperationType::kReshape,
                    {builder.input(kReal, {0, 0, 0, 0, 0}),
                     builder.constant(OperandType::kTensorInt32, {2}, shape)},
                    {rows});
  builder.operation(OperationType::kAbs, {rows}, {builder.output(kReal, {0, 7})});
  const auto supported = device_->supportedOperations(builder.model());
  ASSERT_TRUE(supported) << supported.error().toString();
  for (const hal::OperationSupport& support : *supported)
    EXPECT_TRUE(support.supported) << support.reason;
}

TEST_F(DynamicModelTest, ExpectedShapesArePrepared) {
  hal::PrepareOptions options;
  options.expectedInputs = {{3, 6, 6, 3}};
  const auto prepared =
      device_->prepareModel(std::make_shared<const graph::Model>(imageModel()), options, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  EXPECT_EQ((*prepared)->startReport().shapes, 1u);
  run(**prepared, 3, reals(3 * 6 * 6 * 3));
  EXPECT_EQ((*prepared)->startReport().shapes, 1u);
}

TEST_F(DynamicModelTest, AnOutputWithTooLittleRoomTellsItsShape) {
  const auto prepared =
      device_->prepareModel(std::make_shared<const graph::Model>(imageModel()), {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  std::vector<uint8_t> images = reals(size_t{2} * 6 * 6 * 3);
  std::vector<uint8_t> tooSmall(7, 0xA5);
  const auto execution = (*prepared)->createExecution(
      {{argumentOf(images, {2, 6, 6, 3})}, {argumentOf(tooSmall, {})}});
  ASSERT_TRUE(execution) << execution.error().toString();
  const hal::ExecutionResult result = (*execution)->compute({});
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kOutputInsufficientSize);
  ASSERT_EQ(result.outputShapes.size(), 1u);
  EXPECT_EQ(result.outputShapes[0].dimensions, (graph::Dimensions{2, 5}));
  EXPECT_FALSE(result.outputShapes[0].isSufficient);
  EXPECT_EQ(tooSmall, std::vector<uint8_t>(7, 0xA5));
}

// As a part of a divided model may have it. The operations of a whole one are refused.
TEST_F(DynamicModelTest, AnInputOfUnknownRankIsComputedInEachRank) {
  ModelBuilder builder;
  const uint32_t input = builder.input(kReal, {});
  const uint32_t output = builder.output(kReal, {});
  builder.operation(OperationType::kRelu, {input}, {output});
  const auto prepared =
      device_->prepareModel(std::make_shared<const graph::Model>(builder.model()), {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  for (const graph::Dimensions& dimensions :
       {graph::Dimensions{6}, graph::Dimensions{2, 3}, graph::Dimensions{1, 2, 3}}) {
    std::vector<uint8_t> values = reals(6);
    std::vector<uint8_t> result(values.size());
    const auto execution =
        (*prepared)->createExecution({{argumentOf(values, dimensions)}, {argumentOf(result, {})}});
    ASSERT_TRUE(execution) << execution.error().toString();
    const hal::ExecutionResult computed = (*execution)->compute({});
    ASSERT_TRUE(computed.status) << computed.status.error().toString();
    EXPECT_EQ(computed.outputShapes[0].dimensions, dimensions);
    for (size_t i = 0; i < 6; ++i) {
      float before, after;
      std::memcpy(&before, values.data() + i * sizeof before, sizeof before);
      std::memcpy(&after, result.data() + i * sizeof after, sizeof after);
      EXPECT_EQ(after, std::max(before, 0.0f));
    }
  }
  EXPECT_EQ((*prepared)->startReport().shapes, 3u);  // none of them was interpreted
}

// Which inputs of known shapes give.
TEST_F(DynamicModelTest, ShapesBetweenOperationsMayBeLeftOpen) {
  ModelBuilder builder;
  const uint32_t input = builder.input(kReal, {2, 3});
  const uint32_t between = builder.temporary(kReal, {0, 3});
  const uint32_t anyRank = builder.temporary(kReal, {});
  builder.operation(OperationType::kAbs, {input}, {between});
  builder.operation(OperationType::kNeg, {between}, {anyRank});
  builder.operation(OperationType::kRelu1, {anyRank}, {builder.output(kReal, {2, 3})});
  const auto supported = device_->supportedOperations(builder.model());
  ASSERT_TRUE(supported);
  for (const hal::OperationSupport& support : *supported)
    EXPECT_TRUE(support.supported) << support.reason;
  expectReference(builder, {reals(6)});
}

TEST_F(DynamicModelTest, AnInputWithoutElementsIsInterpreted) {
  ModelBuilder builder;
  const uint32_t input = builder.input(kReal, {0, 3});
  builder.operation(OperationType::kAbs, {input}, {builder.output(kReal, {0, 3})});
  const auto prepared =
      device_->prepareModel(std::make_shared<const graph::Model>(builder.model()), {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  std::vector<uint8_t> none;
  none.reserve(1);  // a pointer that is not null
  hal::Request request;
  request.inputs.push_back(argumentOf(none, {0, 3}));
  request.outputs.push_back(argumentOf(none, {0, 3}));
  const auto execution = (*prepared)->createExecution(std::move(request));
  ASSERT_TRUE(execution) << execution.error().toString();
  EXPECT_TRUE((*execution)->compute({}).status);
}

TEST_F(DynamicModelTest, AStateOfADescribedShapeStaysOnTheGpu) {
  // next = state + step
  ModelBuilder builder;
  const uint32_t state = builder.input(kReal, {0, 4});
  const uint32_t step = builder.input(kReal, {0, 4});
  const uint32_t next = builder.output(kReal, {0, 4});
  builder.operation(OperationType::kAdd, {state, step, builder.scalar(int32_t{0})}, {next});
  const auto prepared =
      device_->prepareModel(std::make_shared<const graph::Model>(builder.model()), {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  const std::vector<hal::BufferRole> roles = {{*prepared, true, 0}, {*prepared, false, 0}};
  EXPECT_FALSE(device_->allocate({.dimensions = {0, 4}}, roles));
  std::vector<std::unique_ptr<hal::Buffer>> states;
  for (int i = 0; i < 2; ++i) {
    auto buffer = device_->allocate({.dimensions = {3, 4}}, roles);
    ASSERT_TRUE(buffer) << buffer.error().toString();
    states.push_back(*std::move(buffer));
  }
  std::vector<float> ones(12, 1.0f);
  std::vector<uint8_t> stored(ones.size() * sizeof(float));
  std::memcpy(stored.data(), ones.data(), stored.size());
  for (int i = 0; i < 4; ++i) {
    hal::Request request;
    hal::Argument from, to;
    from.kind = to.kind = hal::Argument::Kind::kBuffer;
    from.token = states[i % 2]->token();
    to.token = states[(i + 1) % 2]->token();
    request.inputs = {from, argumentOf(stored, {3, 4})};
    request.outputs = {to};
    const auto execution = (*prepared)->createExecution(std::move(request));
    ASSERT_TRUE(execution) << execution.error().toString();
    const hal::ExecutionResult result = (*execution)->compute({});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_EQ(result.copiedBytes, stored.size());  // of the step alone
  }
  // A state of another shape does not fit.
  std::vector<uint8_t> two(8 * sizeof(float));
  hal::Request request;
  hal::Argument from;
  from.kind = hal::Argument::Kind::kBuffer;
  from.token = states[0]->token();
  std::vector<uint8_t> result(12 * sizeof(float));
  request.inputs = {from, argumentOf(two, {2, 4})};
  request.outputs = {argumentOf(result, {3, 4})};
  const auto wrong = (*prepared)->createExecution(std::move(request));
  EXPECT_FALSE(wrong && (*wrong)->compute({}).status);
}

// Models in cache files, on a GPU whose driver keeps machine code.
class CachedDynamicModelTest : public DynamicModelTest {
 protected:
  CachedDynamicModelTest() { ::setenv("XDG_STATE_HOME", (folder_.path() / "state").c_str(), 1); }
  ~CachedDynamicModelTest() override { ::unsetenv("XDG_STATE_HOME"); }
  void SetUp() override {
    DynamicModelTest::SetUp();
    gpu_ = openTestGpu();
    if (gpu_ == nullptr) return;
    driver_.emplace(gpu_);
    model_ = std::make_shared<const graph::Model>(imageModel());
  }

  std::filesystem::path modelFile() const { return folder_.path() / "model"; }
  std::filesystem::path dataFile() const { return folder_.path() / "data"; }
  hal::Cache files() const {
    const auto open = [](const std::filesystem::path& path) {
      return base::Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    };
    hal::Cache cache;
    cache.modelFiles.push_back(open(modelFile()));
    cache.dataFiles.push_back(open(dataFile()));
    cache.token = {1};
    return cache;
  }
  // As in a process that has compiled nothing yet.
  Result<std::shared_ptr<DynamicModel>> create() {
    return DynamicModel::create({gpu_, *Pipelines::create(gpu_)}, model_, {}, files());
  }
  Result<std::shared_ptr<DynamicModel>> restore() {
    driver_->given.clear();
    HEARTH_ASSIGN(auto saved, loadModel(gpu_->facts(), files()));
    return DynamicModel::createSaved({gpu_, *Pipelines::create(gpu_)}, {},
                                     std::get<SavedFamily>(std::move(saved)), files());
  }
  void expectMiss(const std::string& what) {
    const uint64_t trusted = cache::trustedCacheBytes();
    EXPECT_FALSE(restore()) << what;
    EXPECT_EQ(cache::trustedCacheBytes(), trusted) << what;
    EXPECT_TRUE(driver_->given.empty()) << what;
  }
  void expectRuns(hal::PreparedModel& prepared, uint32_t batches) {
    const auto reference =
        hal::prepareInterpreted(model_, {}, nullptr, "", nullptr, ops::KernelSet::kReference);
    ASSERT_TRUE(reference);
    const std::vector<uint8_t> images = reals(size_t{batches} * 6 * 6 * 3);
    EXPECT_THAT(run(prepared, batches, images),
                testing::Pointwise(testing::FloatNear(1e-3f), run(**reference, batches, images)));
  }

  const cache::TempFolder folder_{cache::TempFolder::Place::kMemory};
  std::shared_ptr<Gpu> gpu_;
  std::optional<CachingDriver> driver_;
  std::shared_ptr<const graph::Model> model_;
};

TEST_F(CachedDynamicModelTest, AWarmStartMakesNoPlanForShapesThatAreThere) {
  {
    const auto created = create();
    ASSERT_TRUE(created) << created.error().toString();
    for (const uint32_t batches : {2u, 3u}) expectRuns(**created, batches);
    const hal::StartReport report = (*created)->startReport();
    EXPECT_EQ(report.cacheProblem, "");
    EXPECT_EQ(report.state, hal::StartReport::State::kCold);
  }
  const auto restored = restore();
  ASSERT_TRUE(restored) << restored.error().toString();
  const size_t given = driver_->given.size();
  EXPECT_GT(given, 0u);
  for (const uint32_t batches : {3u, 2u, 3u}) expectRuns(**restored, batches);
  const hal::StartReport report = (*restored)->startReport();
  EXPECT_EQ(report.state, hal::StartReport::State::kWarm) << report.reason;
  EXPECT_EQ(report.shapes, 2u);
  EXPECT_EQ(driver_->given.size(), given) << "Something was compiled.";
}

TEST_F(CachedDynamicModelTest, OtherShapesNeedNoCompilationAndAreKeptAsWell) {
  {
    const auto created = create();
    ASSERT_TRUE(created) << created.error().toString();
    expectRuns(**created, 2);
  }
  const uint64_t dataBytes = std::filesystem::file_size(dataFile());
  {
    const auto restored = restore();
    ASSERT_TRUE(restored) << restored.error().toString();
    const size_t given = driver_->given.size();
    expectRuns(**restored, 5);
    EXPECT_EQ(driver_->given.size(), given) << "Something was compiled.";
    EXPECT_EQ((*restored)->startReport().reason,
              "the compilation cache had no plan for 1 of its shapes");
  }
  EXPECT_EQ(std::filesystem::file_size(dataFile()), dataBytes);
  const auto again = restore();
  ASSERT_TRUE(again) << again.error().toString();
  for (const uint32_t batches : {5u, 2u}) expectRuns(**again, batches);
  EXPECT_EQ((*again)->startReport().state, hal::StartReport::State::kWarm);
}

TEST_F(CachedDynamicModelTest, AModelThatHasNotRunIsThere) {
  ASSERT_TRUE(create());
  const auto restored = restore();
  ASSERT_TRUE(restored) << restored.error().toString();
  expectRuns(**restored, 4);
}

TEST_F(CachedDynamicModelTest, TheFilesKeepSoManyShapes) {
  const auto created = create();
  ASSERT_TRUE(created) << created.error().toString();
  std::vector<uint8_t> full;
  for (uint32_t batches = 1; batches <= kKeptShapes + 2; ++batches) {
    expectRuns(**created, batches);
    if (batches == kKeptShapes) full = cache::readFile(modelFile());
  }
  EXPECT_EQ(cache::readFile(modelFile()), full);
  const auto restored = restore();
  ASSERT_TRUE(restored) << restored.error().toString();
  expectRuns(**restored, kKeptShapes);
  EXPECT_EQ((*restored)->startReport().state, hal::StartReport::State::kWarm);
}

TEST_F(CachedDynamicModelTest, DamagedFilesAreNeverShownToVulkan) {
  const auto created = create();
  ASSERT_TRUE(created) << created.error().toString();
  expectRuns(**created, 2);
  for (const std::filesystem::path& path : {modelFile(), dataFile()}) {
    const std::vector<uint8_t> right = cache::readFile(path);
    for (size_t i = 0; i < 20; ++i) {
      std::vector<uint8_t> wrong = right;
      wrong[right.size() * i / 20] ^= static_cast<uint8_t>(1u << i % 8);
      cache::writeFile(path, wrong);
      expectMiss("a changed bit of " + path.string());
    }
    for (const size_t size : {size_t{0}, right.size() / 2, right.size() - 1}) {
      cache::writeFile(path, std::vector(right.begin(), right.begin() + static_cast<long>(size)));
      expectMiss("a part of " + path.string());
    }
    cache::writeFile(path, right);
    EXPECT_TRUE(restore());
  }
}

TEST_F(CachedDynamicModelTest, FilesThatCannotBeWrittenAreAProblemOfTheCacheOnly) {
  hal::Cache cache = files();
  cache.dataFiles.clear();
  const auto created =
      DynamicModel::create({gpu_, *Pipelines::create(gpu_)}, model_, {}, std::move(cache));
  ASSERT_TRUE(created) << created.error().toString();
  expectRuns(**created, 2);
  EXPECT_NE((*created)->startReport().cacheProblem, "");
}

TEST_F(CachedDynamicModelTest, PlansAreReadAsTheyWereWritten) {
  const auto created = create();
  ASSERT_TRUE(created) << created.error().toString();
  for (const uint32_t batches : {2u, 3u}) expectRuns(**created, batches);
  const std::vector<uint8_t> bytes = cache::readFile(modelFile());
  const uint64_t dataBytes = std::filesystem::file_size(dataFile());
  const auto parsed = parseFamily(bytes, dataBytes, gpu_->facts());
  ASSERT_TRUE(parsed) << parsed.error().toString();
  EXPECT_EQ(parsed->members.size(), 2u);
  EXPECT_EQ(encodeFamily(*parsed), bytes);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parseFamily(std::span(bytes).first(size), dataBytes, gpu_->facts())) << size;
  CachedFamily wrong = *parsed;
  wrong.members[0].shapes[0][0] = 7;
  EXPECT_FALSE(parseFamily(encodeFamily(wrong), dataBytes, gpu_->facts()));
  wrong = *parsed;
  wrong.members[0].constants[0].offset = dataBytes;
  EXPECT_FALSE(parseFamily(encodeFamily(wrong), dataBytes, gpu_->facts()));
  wrong = *parsed;
  wrong.members[0].constants.pop_back();
  EXPECT_FALSE(parseFamily(encodeFamily(wrong), dataBytes, gpu_->facts()));
}

TEST_F(DynamicModelTest, EqualConstantsLieOnTheGpuOnce) {
  const std::shared_ptr<Gpu> gpu = openTestGpu();
  ASSERT_NE(gpu, nullptr);
  std::vector<std::vector<uint8_t>> values = {bytes(100), {}, bytes(100)};
  values[1] = values[0];
  SharedConstants shared;
  std::vector<std::shared_ptr<const SharedConstants::Uploaded>> uploaded;
  for (const std::vector<uint8_t>& each : values) {
    Plan plan;
    PlannedTensor tensor;
    tensor.place = PlannedTensor::Place::kConstants;
    tensor.bytes = each.size();
    tensor.constant = each.data();
    plan.tensors.push_back(tensor);
    ASSERT_TRUE(placeTensors(&plan, gpu->facts().rangeAlignment, 0));
    auto constants = ConstantBytes::of(plan, gpu->facts().rangeAlignment);
    ASSERT_TRUE(constants);
    auto found = shared.find(gpu, nullptr, *std::move(constants));
    ASSERT_TRUE(found) << found.error().toString();
    uploaded.push_back(*std::move(found));
  }
  EXPECT_EQ(uploaded[0], uploaded[1]);
  EXPECT_NE(uploaded[0]->buffer, uploaded[2]->buffer);
}

}  // namespace
}  // namespace hearth::vulkan
