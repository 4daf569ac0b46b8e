// SPDX-License-Identifier: Apache-2.0
// The device with a vendor's library in this process: only what a library may do without harm.
#include "drivers/delegate/delegate_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "drivers/delegate/call_limit.h"
#include "hal/cts/device_fixture.h"
#include "hal/cts/model_builder.h"

namespace hearth::drivers::delegate {
namespace {

using hal::cts::argumentFor;
using hal::cts::computeOnce;
using testing::ElementsAre;
using testing::HasSubstr;

std::string libraryOf(int minor) {
  return HEARTH_TEST_DELEGATES "/libvendor_delegate_" + std::to_string(minor) + ".so";
}

Result<std::shared_ptr<hal::Device>> deviceWith(DelegateOptions options, int minor = 20) {
  return createDevice({.name = "npu",
                       .library = libraryOf(minor),
                       .options = std::move(options),
                       .version = {minor},
                       .prepareLimit = std::chrono::minutes(1)});
}

std::shared_ptr<const graph::Model> chain() {
  return std::make_shared<const graph::Model>(hal::cts::chainModel({2, 2}));
}

// (a + b) * a - b of four numbers, twice with other inputs.
void expectRightResults(hal::Device& device) {
  const auto prepared = device.prepareModel(chain(), {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  for (const float first : {1.0f, 5.0f}) {
    std::vector<float> a = {first, 2, 3, 4}, b = {1, 1, 2, 2}, sum(4);
    const auto result =
        computeOnce(**prepared, {{argumentFor(a), argumentFor(b)}, {argumentFor(sum)}});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_THAT(sum, ElementsAre((first + 1) * first - 1, 5, 13, 22));
  }
}

TEST(DelegateDeviceTest, StructuresOfAllVersionsWork) {
  for (const int minor : {3, 8, 14, 20}) {
    SCOPED_TRACE(minor);
    const auto device = deviceWith({}, minor);
    ASSERT_TRUE(device) << device.error().toString();
    expectRightResults(**device);
    // Nor does anybody need to say which version it is: what is read lies where it always lay.
    const auto unknown = createDevice({.name = "npu", .library = libraryOf(minor)});
    ASSERT_TRUE(unknown) << unknown.error().toString();
    expectRightResults(**unknown);
  }
}

class HabitTest : public testing::TestWithParam<const char*> {};

TEST_P(HabitTest, IsNoHarm) {
  const auto device = deviceWith({{"habit", GetParam()}});
  ASSERT_TRUE(device) << device.error().toString();
  expectRightResults(**device);
}

INSTANTIATE_TEST_SUITE_P(Delegates, HabitTest,
                         testing::Values("temporaries", "keep", "pointers", "params", "resize",
                                         "dynamic", "handles", "print", "static"),
                         [](const auto& info) { return info.param; });

TEST(DelegateDeviceTest, TakesWhatTheDelegateTakes) {
  const auto device = deviceWith({{"take", ",0,41,"}});
  ASSERT_TRUE(device);
  const auto supports = (*device)->supportedOperations(*chain());
  ASSERT_TRUE(supports) << supports.error().toString();
  ASSERT_EQ(supports->size(), 3u);
  EXPECT_TRUE((*supports)[0].supported);
  EXPECT_FALSE((*supports)[1].supported);
  EXPECT_EQ((*supports)[1].reason, "The delegate does not take MUL.");
  EXPECT_TRUE((*supports)[2].supported);
  const auto prepared = (*device)->prepareModel(chain(), {}, {});
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code(), ErrorCode::kUnsupported);
}

// y = vendor-times(x), whose factor the options have; `name` is of the operator.
std::shared_ptr<const graph::Model> customModel(std::string_view name, uint8_t factor) {
  hal::cts::ModelBuilder builder;
  constexpr auto kBytes = graph::OperandType::kTensorQuant8Asymm;
  constexpr auto kFloat = graph::OperandType::kTensorFloat32;
  const std::vector<uint8_t> text(name.begin(), name.end());
  const uint32_t one = builder.scalar(1);
  const uint32_t nameOperand =
      builder.constant(kBytes, {static_cast<uint32_t>(text.size())}, text, 1.0f);
  const uint32_t options = builder.constant(kBytes, {1}, std::vector<uint8_t>{factor}, 1.0f);
  builder.operation(graph::OperationType::kCustom,
                    {nameOperand, one, one, options, builder.input(kFloat, {4})},
                    {builder.output(kFloat, {4})});
  return std::make_shared<const graph::Model>(builder.model());
}

TEST(DelegateDeviceTest, ComputesCustomOperationsThatItsManifestNames) {
  const auto device =
      createDevice({.name = "npu", .library = libraryOf(20), .customOperators = {"vendor-times"}});
  ASSERT_TRUE(device) << device.error().toString();
  EXPECT_THAT((*device)->supportedExtensions(), testing::Contains("hearth.custom/vendor-times"));
  const auto model = customModel("vendor-times", 3);
  const auto supports = (*device)->supportedOperations(*model);
  ASSERT_TRUE(supports) << supports.error().toString();
  EXPECT_TRUE((*supports)[0].supported) << (*supports)[0].reason;
  const auto prepared = (*device)->prepareModel(model, {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  std::vector<float> x = {1, -2, 3, 4}, y(4);
  const auto result = computeOnce(**prepared, {{argumentFor(x)}, {argumentFor(y)}});
  ASSERT_TRUE(result.status) << result.status.error().toString();
  EXPECT_THAT(y, ElementsAre(3, -6, 9, 12));
}

TEST(DelegateDeviceTest, RefusesCustomOperationsThatItsManifestDoesNotName) {
  const auto device = deviceWith({});
  ASSERT_TRUE(device);
  const auto supports = (*device)->supportedOperations(*customModel("vendor-unnamed", 3));
  ASSERT_TRUE(supports) << supports.error().toString();
  EXPECT_FALSE((*supports)[0].supported);
  EXPECT_THAT((*supports)[0].reason, HasSubstr("vendor-unnamed"));
}

struct Failure {
  const char* stage;
  const char* message;
};
class FailureTest : public testing::TestWithParam<Failure> {};

TEST_P(FailureTest, IsAnErrorWithTheDelegatesWords) {
  const auto device = deviceWith({{"stage", GetParam().stage}, {"harm", "error"}});
  ASSERT_TRUE(device);
  const auto prepared = (*device)->prepareModel(chain(), {}, {});
  ASSERT_FALSE(prepared);
  EXPECT_THAT(prepared.error().toString(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(Delegates, FailureTest,
                         testing::Values(Failure{"create", "there is no NPU"},
                                         Failure{"prepare", "the compiler of NPU fails"},
                                         Failure{"init", "Its prepare fails"},
                                         Failure{"kernel", "kernel 7 cannot be prepared"},
                                         Failure{"invoke", "the NPU does not answer"}),
                         [](const auto& info) { return info.param.stage; });

TEST(DelegateDeviceTest, RefusesOtherShapesAndNodesThatAreNotThere) {
  for (const char* const habit : {"misshape", "nowhere"}) {
    const auto device = deviceWith({{"habit", habit}});
    ASSERT_TRUE(device);
    EXPECT_FALSE((*device)->prepareModel(chain(), {}, {})) << habit;
  }
}

TEST(DelegateDeviceTest, AWriteBesideATensorIsAnError) {
  for (const char* const habit : {"overrun", "underrun"}) {
    const auto device = deviceWith({{"habit", habit}});
    ASSERT_TRUE(device);
    const auto prepared = (*device)->prepareModel(chain(), {}, {});
    ASSERT_FALSE(prepared) << habit;
    EXPECT_THAT(prepared.error().toString(),
                HasSubstr("writes before the begin or behind the end of the tensor"));
  }
}

TEST(DelegateDeviceTest, ABufferThatCannotBeReadIsAnError) {
  const auto device = deviceWith({{"habit", "handles"}, {"stage", "copy"}, {"harm", "error"}});
  ASSERT_TRUE(device);
  const auto prepared = (*device)->prepareModel(chain(), {}, {});
  ASSERT_FALSE(prepared);
  EXPECT_THAT(prepared.error().toString(), HasSubstr("the NPU's memory cannot be read"));
}

TEST(DelegateDeviceTest, OpenShapesArePreparedWhenTheyAreKnown) {
  const auto device = deviceWith({});
  ASSERT_TRUE(device);
  const auto model = std::make_shared<const graph::Model>(hal::cts::addModel({0}));
  const auto supports = (*device)->supportedOperations(*model);
  ASSERT_TRUE(supports);
  EXPECT_TRUE((*supports)[0].supported) << (*supports)[0].reason;
  const auto prepared = (*device)->prepareModel(model, {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  for (const uint32_t size : {3u, 5u, 3u}) {
    std::vector<float> a(size, 1.0f), b(size, 2.0f), sum(size);
    const auto result = computeOnce(
        **prepared, {{argumentFor(a, {size}), argumentFor(b, {size})}, {argumentFor(sum)}});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_THAT(sum, testing::Each(3.0f));
  }
  EXPECT_EQ((*prepared)->startReport().shapes, 2u);
}

// out = reshape(a + b, shape(a)), and then `last` of it and b.
std::shared_ptr<const graph::Model> shapedModel(graph::OperationType last) {
  hal::cts::ModelBuilder builder;
  constexpr auto kFloat = graph::OperandType::kTensorFloat32;
  const uint32_t a = builder.input(kFloat, {0});
  const uint32_t b = builder.input(kFloat, {0});
  const uint32_t none = builder.scalar(0);
  const uint32_t shape = builder.temporary(graph::OperandType::kTensorInt32, {1});
  const uint32_t sum = builder.temporary(kFloat, {0});
  const uint32_t same = builder.temporary(kFloat, {0});
  builder.operation(graph::OperationType::kShape, {a}, {shape});
  builder.operation(graph::OperationType::kAdd, {a, b, none}, {sum});
  builder.operation(graph::OperationType::kReshape, {sum, shape}, {same});
  builder.operation(last, {same, b, none}, {builder.output(kFloat, {0})});
  return std::make_shared<const graph::Model>(builder.model());
}

TEST(DelegateDeviceTest, OperationsOnShapesAreTakenWithAllOthersOnly) {
  const auto all = deviceWith({});
  ASSERT_TRUE(all);
  const auto taken = (*all)->supportedOperations(*shapedModel(graph::OperationType::kMul));
  ASSERT_TRUE(taken) << taken.error().toString();
  for (const hal::OperationSupport& support : *taken)
    EXPECT_TRUE(support.supported) << support.reason;
  // Without MUL, RESHAPE would be in a part that does not know its shape.
  const auto some = deviceWith({{"take", ",0,22,"}});
  ASSERT_TRUE(some);
  const auto divided = (*some)->supportedOperations(*shapedModel(graph::OperationType::kMul));
  ASSERT_TRUE(divided) << divided.error().toString();
  std::vector<bool> answers;
  for (const hal::OperationSupport& support : *divided) answers.push_back(support.supported);
  EXPECT_THAT(answers, ElementsAre(false, true, false, false));
}

// out = (a + w) * b, or (a + w) * w, where w is the DEQUANTIZE of {1, 2, 3, 4} * 0.5.
std::shared_ptr<const graph::Model> modelWithSmallWeights(bool areReadTwice) {
  hal::cts::ModelBuilder builder;
  constexpr auto kFloat = graph::OperandType::kTensorFloat32;
  const uint32_t a = builder.input(kFloat, {4});
  const uint32_t b = builder.input(kFloat, {4});
  const uint32_t none = builder.scalar(0);
  const uint32_t weights = builder.constant(graph::OperandType::kTensorQuant8Asymm, {4},
                                            std::vector<uint8_t>{1, 2, 3, 4}, 0.5f);
  const uint32_t wide = builder.temporary(kFloat, {4});
  const uint32_t sum = builder.temporary(kFloat, {4});
  builder.operation(graph::OperationType::kDequantize, {weights}, {wide});
  builder.operation(graph::OperationType::kAdd, {a, wide, none}, {sum});
  builder.operation(graph::OperationType::kMul, {sum, areReadTwice ? wide : b, none},
                    {builder.output(kFloat, {4})});
  return std::make_shared<const graph::Model>(builder.model());
}

TEST(DelegateDeviceTest, WeightsOfSmallerTypesAreConstantsThatAreComputedBeforehand) {
  const auto model = modelWithSmallWeights(false);
  // The delegate does not know DEQUANTIZE.
  const auto device = deviceWith({{"take", ",0,18,"}});
  ASSERT_TRUE(device);
  const auto supports = (*device)->supportedOperations(*model);
  ASSERT_TRUE(supports) << supports.error().toString();
  for (const hal::OperationSupport& support : *supports)
    EXPECT_TRUE(support.supported) << support.reason;
  const auto prepared = (*device)->prepareModel(model, {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  std::vector<float> x = {1, 1, 1, 1}, y = {1, 2, 3, 4}, out(4);
  const auto result =
      computeOnce(**prepared, {{argumentFor(x), argumentFor(y)}, {argumentFor(out)}});
  ASSERT_TRUE(result.status) << result.status.error().toString();
  EXPECT_THAT(out, ElementsAre(1.5, 4, 7.5, 12));
}

TEST(DelegateDeviceTest, AConstantIsTakenWithAllThatReadItOnly) {
  const auto device = deviceWith({{"take", ",18,"}});  // MUL alone
  ASSERT_TRUE(device);
  const auto once = (*device)->supportedOperations(*modelWithSmallWeights(false));
  ASSERT_TRUE(once) << once.error().toString();
  EXPECT_THAT((*once)[0].reason, HasSubstr("run elsewhere"));
  EXPECT_FALSE((*once)[0].supported);
  EXPECT_TRUE((*once)[2].supported) << (*once)[2].reason;
  // MUL would have no constant, since ADD and with it DEQUANTIZE are elsewhere.
  const auto twice = (*device)->supportedOperations(*modelWithSmallWeights(true));
  ASSERT_TRUE(twice) << twice.error().toString();
  EXPECT_FALSE((*twice)[0].supported);
  EXPECT_FALSE((*twice)[2].supported);
  EXPECT_THAT((*twice)[2].reason, HasSubstr("computed elsewhere"));
}

TEST(CallLimitTest, EndsTheProcessWhenTheLibraryDoesNotReturn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const CallLimit limit("libvx.so", std::chrono::seconds(1));
        std::this_thread::sleep_for(std::chrono::minutes(10));
      },
      testing::ExitedWithCode(1), "libvx.so has not returned for 1 seconds");
}

TEST(DelegateDeviceTest, AnotherLibraryIsRefusedWithASentence) {
  const auto missing = createDevice({.name = "npu", .library = "/nowhere/libvx.so"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace hearth::drivers::delegate
