// SPDX-License-Identifier: Apache-2.0
// Models of float16 tensors run on the kernels of float32, rounded after each operation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "drivers/cpu/testing/compared_models.h"
#include "drivers/cpu/testing/model_cache_test_util.h"
#include "graph/step_model.h"
#include "ops/half.h"

namespace hearth::cpu {
namespace {

using ops::Half;
using ::testing::Contains;
using ::testing::Not;

constexpr auto kHalves = OperandType::kTensorFloat16;
constexpr float kTolerance = 2e-3f;

std::vector<Half> halves(size_t count, unsigned seed, float spread = 1.0f) {
  std::vector<Half> values;
  for (const float value : randomFloats(count, seed, spread))
    values.push_back(static_cast<Half>(value));
  return values;
}

Bytes halfBytes(const Dimensions& dimensions, unsigned seed) {
  return bytesOf(halves(countOf(dimensions), seed));
}

// Constants of float16, in the model or in one memory of the client.
class HalfConstants {
 public:
  explicit HalfConstants(ModelBuilder* builder, bool isInPool = false)
      : builder_(*builder),
        pool_(isInPool ? memory::Pool::anonymous(uint64_t{4} << 20).value() : nullptr) {}

  uint32_t add(const Dimensions& dimensions, float spread = 0.3f) {
    const std::vector<Half> values = halves(countOf(dimensions), ++seed_, spread);
    if (pool_ == nullptr) return builder_.constant(kHalves, dimensions, values);
    const uint64_t offset = used_;
    std::memcpy(pool_->mutableData() + offset, values.data(), values.size() * sizeof(Half));
    used_ = (offset + values.size() * sizeof(Half) + 63) / 64 * 64;
    return builder_.reference(kHalves, dimensions, pool_, offset);
  }
  // Overwrites the memory, as a client may once its model is freed.
  void wipe() const { std::memset(pool_->mutableData(), 0x7f, pool_->size()); }

 private:
  ModelBuilder& builder_;
  memory::PoolRef pool_;
  uint64_t used_ = 0;
  unsigned seed_ = 0;
};

// Layers as image classifiers have them. One output lies between layers. `batch` 0: it is unknown.
class Classifier {
 public:
  explicit Classifier(uint32_t batch, bool isInPool = false) : constants_(&builder_, isInPool) {
    const auto input = builder_.input(kHalves, {batch, 16, 16, 3});
    const auto first = conv(input, {24, 3, 3, 3}, {batch, 8, 8, 24}, 2, 3);
    const auto deep = builder_.temporary(kHalves, {batch, 8, 8, 24});
    builder_.operation(OperationType::kDepthwiseConv2d,
                       {first, constants_.add({1, 3, 3, 24}), constants_.add({24}), int32(1),
                        int32(1), int32(1), int32(1), int32(3)},
                       {deep});
    const auto narrow = conv(deep, {24, 1, 1, 24}, {batch, 8, 8, 24}, 1, 0);
    const auto sum = builder_.output(kHalves, {batch, 8, 8, 24});
    builder_.operation(OperationType::kAdd, {first, narrow, int32(0)}, {sum});
    const auto wide = conv(sum, {40, 1, 1, 24}, {batch, 8, 8, 40}, 1, 0);
    const auto clamped = builder_.temporary(kHalves, {batch, 8, 8, 40});
    builder_.operation(OperationType::kRelu, {wide}, {clamped});
    const auto padded = builder_.temporary(kHalves, {batch, 10, 10, 40});
    builder_.operation(OperationType::kPad,
                       {clamped, builder_.constant<int32_t>(OperandType::kTensorInt32, {4, 2},
                                                            {0, 0, 1, 1, 1, 1, 0, 0})},
                       {padded});
    // As many weights as are worth keeping in a store.
    const auto last = conv(padded, {96, 3, 3, 40}, {batch, 4, 4, 96}, 2, 1, 2);
    const auto mean = builder_.temporary(kHalves, {batch, 96});
    builder_.operation(
        OperationType::kMean,
        {last, builder_.constant<int32_t>(OperandType::kTensorInt32, {2}, {1, 2}), int32(0)},
        {mean});
    const auto scores = builder_.temporary(kHalves, {batch, 10});
    builder_.operation(OperationType::kFullyConnected,
                       {mean, constants_.add({10, 96}), constants_.add({10}), int32(0)}, {scores});
    const auto beta = builder_.constant<Half>(OperandType::kFloat16, {}, {static_cast<Half>(1)});
    builder_.operation(OperationType::kSoftmax, {scores, beta},
                       {builder_.output(kHalves, {batch, 10})});
  }

  const graph::Model& model() const { return builder_.model(); }
  const HalfConstants& constants() const { return constants_; }

 private:
  uint32_t int32(int32_t value) { return builder_.scalar(value); }

  uint32_t conv(uint32_t input, const Dimensions& filter, const Dimensions& output, int32_t stride,
                int32_t activation, int32_t padding = 1) {
    const auto result = builder_.temporary(kHalves, output);
    builder_.operation(OperationType::kConv2d,
                       {input, constants_.add(filter), constants_.add({filter[0]}), int32(padding),
                        int32(stride), int32(stride), int32(activation)},
                       {result});
    return result;
  }

  ModelBuilder builder_;
  HalfConstants constants_;
};

const Dimensions kPictures = {2, 16, 16, 3};

// The kinds of kernel that the operations of a model have.
std::vector<std::string> kernelsOf(const graph::Model& model) {
  const auto support = createCpuDevice()->explainOperations(model);
  EXPECT_TRUE(support) << support.error().toString();
  std::vector<std::string> kernels;
  if (support)
    for (const hal::OperationSupport& operation : *support) kernels.push_back(operation.kernel);
  return kernels;
}

std::shared_ptr<hal::PreparedModel> prepare(const graph::Model& model) {
  hal::PrepareOptions options;
  options.threads = 2;
  options.driverOptions["store_mode"] = "off";
  const auto prepared =
      createCpuDevice()->prepareModel(std::make_shared<const graph::Model>(model), options, {});
  EXPECT_TRUE(prepared) << prepared.error().toString();
  return prepared ? *prepared : nullptr;
}

// The outputs of the model when each operation is a model of its own.
std::vector<Bytes> oneByOne(const graph::Model& model, const std::vector<Bytes>& inputs) {
  std::map<uint32_t, Bytes> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) tensors[model.main().inputs[i]] = inputs[i];
  for (uint32_t o = 0; o < model.main().operations.size(); ++o) {
    const graph::StepModel step = graph::makeStepModel(model, {o});
    std::vector<Bytes> read;
    for (const uint32_t input : step.inputs) read.push_back(tensors.at(input));
    const auto made = runPrepared(*step.model, prepare(*step.model), read);
    EXPECT_TRUE(made) << made.error().toString();
    if (!made) return {};
    for (size_t i = 0; i < step.outputs.size(); ++i) tensors[step.outputs[i]] = (*made)[i];
  }
  std::vector<Bytes> outputs;
  for (const uint32_t output : model.main().outputs) outputs.push_back(tensors.at(output));
  return outputs;
}

TEST(Float16TensorsTest, LayersRunOnTheKernelsOfFloat32) {
  const Classifier classifier(2);
  EXPECT_THAT(kernelsOf(classifier.model()), Not(Contains("reference")));
  EXPECT_EQ(
      differenceFromReference(classifier.model(), {halfBytes(kPictures, 1)}, nullptr, kTolerance),
      "");
}

TEST(Float16TensorsTest, ResultsAreThoseOfOneOperationAfterTheOther) {
  const Classifier classifier(2);
  const std::vector<Bytes> inputs = {halfBytes(kPictures, 1)};
  const auto made = runPrepared(classifier.model(), prepare(classifier.model()), inputs);
  ASSERT_TRUE(made) << made.error().toString();
  EXPECT_EQ(*made, oneByOne(classifier.model(), inputs));
}

// What float32 would hold is infinite in float16.
TEST(Float16TensorsTest, NumbersBetweenOperationsAreThoseOfFloat16) {
  ModelBuilder builder;
  const uint32_t input = builder.input(kHalves, {4});
  const uint32_t product = builder.temporary(kHalves, {4});
  const uint32_t none = builder.scalar(0);
  const auto constant = [&](float value) {
    return builder.constant<Half>(kHalves, {1}, {static_cast<Half>(value)});
  };
  builder.operation(OperationType::kMul, {input, constant(1024), none}, {product});
  builder.operation(OperationType::kMul, {product, constant(0.0009765625f), none},
                    {builder.output(kHalves, {4})});
  EXPECT_EQ(kernelsOf(builder.model()).back(), "xnnpack");
  const std::vector<Half> numbers = {static_cast<Half>(1.5f), static_cast<Half>(-63.9f),
                                     static_cast<Half>(64), static_cast<Half>(-1000)};
  const auto both = runBoth(builder.model(), {bytesOf(numbers)});
  ASSERT_TRUE(both) << both.error().toString();
  EXPECT_EQ(both->made, both->expected);
}

hal::Argument argumentOf(Bytes* bytes) {
  hal::Argument argument;
  argument.kind = hal::Argument::Kind::kPointer;
  argument.pointer = bytes->data();
  argument.length = bytes->size();
  return argument;
}

TEST(Float16TensorsTest, EachBatchGivesTheResultsOfTheFixedModel) {
  const auto prepared = prepare(Classifier(0).model());
  ASSERT_NE(prepared, nullptr);
  for (const uint32_t batch : {1u, 3u, 2u, 1u}) {
    const Bytes input = halfBytes({batch, 16, 16, 3}, batch);
    const Classifier fixed(batch);
    const auto expected = runPrepared(fixed.model(), prepare(fixed.model()), {input});
    ASSERT_TRUE(expected) << expected.error().toString();
    Bytes given = input;
    hal::Request request;
    request.inputs = {argumentOf(&given)};
    request.inputs[0].dimensions = {batch, 16, 16, 3};
    std::vector<Bytes> made;
    for (const Bytes& output : *expected) made.emplace_back(output.size());
    for (Bytes& output : made) request.outputs.push_back(argumentOf(&output));
    const auto execution = prepared->createExecution(request);
    ASSERT_TRUE(execution) << execution.error().toString();
    const hal::ExecutionResult result = (*execution)->compute({});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_EQ(made, *expected) << "batch " << batch;
  }
}

// x = tanh(x W + b), five times; the counter and x are the state of the loop.
graph::Model layerLoop() {
  constexpr uint32_t kWidth = 37;
  constexpr auto kInt = OperandType::kTensorInt32;
  ModelBuilder builder;
  HalfConstants constants(&builder);
  const uint32_t condition = builder.beginSubgraph();
  uint32_t counter = builder.input(kInt, {1});
  builder.input(kHalves, {2, kWidth});
  builder.operation(OperationType::kLess, {counter, builder.constant<int32_t>(kInt, {1}, {5})},
                    {builder.output(OperandType::kTensorBool8, {1})});
  const uint32_t body = builder.beginSubgraph();
  counter = builder.input(kInt, {1});
  uint32_t x = builder.input(kHalves, {2, kWidth});
  const uint32_t none = builder.scalar(0);
  builder.operation(OperationType::kAdd, {counter, builder.constant<int32_t>(kInt, {1}, {1}), none},
                    {builder.output(kInt, {1})});
  const uint32_t sum = builder.temporary(kHalves, {2, kWidth});
  builder.operation(OperationType::kFullyConnected,
                    {x, constants.add({kWidth, kWidth}), constants.add({kWidth}), none}, {sum});
  builder.operation(OperationType::kTanh, {sum}, {builder.output(kHalves, {2, kWidth})});
  builder.returnToMain();
  counter = builder.input(kInt, {1});
  x = builder.input(kHalves, {2, kWidth});
  builder.operation(OperationType::kWhile,
                    {builder.subgraphOperand(condition), builder.subgraphOperand(body), counter, x},
                    {builder.output(kInt, {1}), builder.output(kHalves, {2, kWidth})});
  return builder.model();
}

TEST(Float16TensorsTest, StateOfALoop) {
  const auto both = runBoth(layerLoop(), {bytesOf(std::vector<int32_t>{0}), halfBytes({2, 37}, 1)});
  ASSERT_TRUE(both) << both.error().toString();
  EXPECT_EQ(both->made[0], both->expected[0]);
  ASSERT_EQ(both->made[1].size(), both->expected[1].size());
  const auto at = [](const Bytes& bytes, size_t i) {
    Half value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return static_cast<float>(value);
  };
  for (size_t i = 0; i < both->made[1].size() / sizeof(Half); ++i)
    EXPECT_NEAR(at(both->made[1], i), at(both->expected[1], i), kTolerance) << i;
}

// Operations that have no faster kernel in float32 read and write float16 between those that have.
TEST(Float16TensorsTest, OtherOperationsReadTheNarrowForm) {
  ModelBuilder builder;
  HalfConstants constants(&builder);
  const uint32_t none = builder.scalar(0);
  const uint32_t input = builder.input(kHalves, {3, 20});
  const uint32_t sum = builder.temporary(kHalves, {3, 20});
  builder.operation(OperationType::kAdd, {input, constants.add({20}), none}, {sum});
  // Converted to float32, and read by another operation.
  const uint32_t wide = builder.output(kFloat, {3, 20});
  builder.operation(OperationType::kCast, {sum}, {wide});
  const uint32_t back = builder.temporary(kHalves, {3, 20});
  builder.operation(OperationType::kCast, {wide}, {back});
  builder.operation(OperationType::kMul, {sum, back, none}, {builder.output(kHalves, {3, 20})});
  // A tensor that only moves is no float32 one.
  const uint32_t unused = builder.input(kHalves, {4, 5});
  builder.operation(OperationType::kTranspose,
                    {unused, builder.constant<int32_t>(OperandType::kTensorInt32, {2}, {1, 0})},
                    {builder.output(kHalves, {5, 4})});
  const std::vector<Bytes> inputs = {halfBytes({3, 20}, 1), halfBytes({4, 5}, 2)};
  const auto both = runBoth(builder.model(), inputs);
  ASSERT_TRUE(both) << both.error().toString();
  EXPECT_EQ(both->made, both->expected);
}

// Weights that are computed from constants are computed once.
TEST(Float16TensorsTest, ComputedWeights) {
  ModelBuilder builder;
  HalfConstants constants(&builder);
  const uint32_t none = builder.scalar(0);
  const uint32_t input = builder.input(kHalves, {3, 20});
  const uint32_t weights = builder.temporary(kHalves, {16, 20});
  builder.operation(OperationType::kMul, {constants.add({16, 20}), constants.add({1}), none},
                    {weights});
  builder.operation(OperationType::kFullyConnected, {input, weights, constants.add({16}), none},
                    {builder.output(kHalves, {3, 16})});
  EXPECT_EQ(kernelsOf(builder.model()).front(), "none");
  EXPECT_NE(kernelsOf(builder.model()).back(), "reference");
  EXPECT_EQ(differenceFromReference(builder.model(), {halfBytes({3, 20}, 1)}, nullptr, kTolerance),
            "");
}

class Float16CacheTest : public ModelCacheTest {};

// Cache files have what the layers packed, and the constants that they did not.
TEST_F(Float16CacheTest, CacheFilesHaveAllConstants) {
  const Classifier classifier(2, true);
  const auto model = std::make_shared<const graph::Model>(classifier.model());
  const std::vector<Bytes> inputs = {halfBytes(kPictures, 1)};
  auto prepared = device_->prepareModel(model, options_, files());
  ASSERT_TRUE(prepared) << prepared.error().toString();
  const auto expected = runPrepared(*model, *prepared, inputs);
  ASSERT_TRUE(expected) << expected.error().toString();
  prepared->reset();
  classifier.constants().wipe();
  const auto restored = restore(files());
  ASSERT_TRUE(restored) << restored.error().toString();
  EXPECT_TRUE((*restored)->startReport().packedBytes.empty());
  const auto made = runPrepared(*model, *restored, inputs);
  ASSERT_TRUE(made) << made.error().toString();
  EXPECT_EQ(*made, *expected);
}

// XNNPACK packs groups of one channel at each start, also where float32 tensors have weights of
// float16.
TEST_F(Float16CacheTest, GroupsOfOneChannelAreInTheCacheFiles) {
  const Dimensions shape = {1, 6, 6, 4};
  const Dimensions filterShape = {4, 3, 3, 1};
  for (const auto type : {kHalves, kFloat}) {
    ModelBuilder builder;
    HalfConstants constants(&builder, true);
    const auto weight = [&](const Dimensions& dimensions) {
      const uint32_t half = constants.add(dimensions);
      if (type == kHalves) return half;
      const uint32_t wide = builder.temporary(kFloat, dimensions);
      builder.operation(OperationType::kDequantize, {half}, {wide});
      return wide;
    };
    const auto int32 = [&](int32_t value) {
      return builder.scalar(value);
    };
    const uint32_t filter = weight(filterShape);
    const uint32_t bias = weight({4});
    builder.operation(OperationType::kGroupedConv2d,
                      {builder.input(type, shape), filter, bias, int32(1), int32(1), int32(1),
                       int32(4), int32(0)},
                      {builder.output(type, shape)});
    const auto model = std::make_shared<const graph::Model>(builder.model());
    const std::vector<Bytes> inputs = {type == kHalves ? halfBytes(shape, 1)
                                                       : bytesOf(randomFloats(countOf(shape), 1))};
    auto prepared = device_->prepareModel(model, options_, files());
    ASSERT_TRUE(prepared) << prepared.error().toString();
    const auto expected = runPrepared(*model, *prepared, inputs);
    ASSERT_TRUE(expected) << expected.error().toString();
    prepared->reset();
    constants.wipe();
    const auto restored = restore(files());
    ASSERT_TRUE(restored) << restored.error().toString();
    const auto made = runPrepared(*model, *restored, inputs);
    ASSERT_TRUE(made) << made.error().toString();
    EXPECT_EQ(*made, *expected);
  }
}

// A start from the store packs nothing.
TEST_F(Float16CacheTest, AWarmStartPacksNothing) {
  useStore();
  const Classifier classifier(2);
  const auto model = std::make_shared<const graph::Model>(classifier.model());
  const std::vector<Bytes> inputs = {halfBytes(kPictures, 1)};
  std::vector<Bytes> first;
  for (const bool isWarm : {false, true}) {
    const auto prepared = device_->prepareModel(model, options_, {});
    ASSERT_TRUE(prepared) << prepared.error().toString();
    EXPECT_EQ((*prepared)->startReport().packedBytes.empty(), isWarm);
    const auto made = runPrepared(*model, *prepared, inputs);
    ASSERT_TRUE(made) << made.error().toString();
    if (isWarm)
      EXPECT_EQ(*made, first);
    else
      first = *made;
  }
}

}  // namespace
}  // namespace hearth::cpu
