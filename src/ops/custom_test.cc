// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ops/custom_operator.h"
#include "ops/device_operator.h"
#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Makes an operator of functions that a test gives.
struct Functions {
  std::function<Result<CustomOutputs>(const CustomCall&)> describe;
  std::function<Status(const CustomCall&)> compute;
};

class TestNode final : public CustomNode {
 public:
  explicit TestNode(const Functions& functions) : functions_(functions) {}
  Result<CustomOutputs> describeOutputs(const CustomCall& call) const override {
    return functions_.describe(call);
  }
  Status compute(const CustomCall& call) const override { return functions_.compute(call); }

 private:
  const Functions& functions_;
};

class TestOperator final : public CustomOperator {
 public:
  TestOperator(std::string name, Functions functions)
      : name_(std::move(name)), functions_(std::move(functions)) {}
  std::string_view name() const override { return name_; }
  int32_t version() const override { return 5; }
  Result<std::shared_ptr<const CustomNode>> makeNode(const CustomCall&) const override {
    return std::make_shared<TestNode>(functions_);
  }

 private:
  const std::string name_;
  const Functions functions_;
};

graph::Operand floats(Dimensions dimensions) {
  return OperationBuilder::tensor(OperandType::kTensorFloat32, std::move(dimensions));
}

Result<CustomOutputs> likeInput(const CustomCall& call) {
  return CustomOutputs{false, {floats(call.inputs[0].dimensions)}};
}

// Adds the first option to each number.
Status addOption(const CustomCall& call) {
  for (uint64_t i = 0; i < call.inputs[0].elementCount(); ++i)
    call.outputs[0].as<float>()[i] =
        call.inputs[0].as<float>()[i] + static_cast<float>(call.options[0] + call.codeVersion);
  return {};
}

void registerTest(const std::string& name, Functions functions) {
  ASSERT_TRUE(registerCustomOperator(std::make_unique<TestOperator>(name, std::move(functions))));
}

graph::Operand bytesOf(size_t size) {
  return OperationBuilder::tensor(OperandType::kTensorQuant8Asymm, {static_cast<uint32_t>(size)},
                                  1.0f);
}

OperationBuilder& addHead(OperationBuilder* builder, const std::string& name, int32_t version = 5) {
  return builder->constant(bytesOf(name.size()), std::vector<char>(name.begin(), name.end()))
      .scalar(version)
      .scalar(int32_t{2})
      .constant(bytesOf(1), std::vector<uint8_t>{10});
}

std::string messageOf(const Status& status) {
  return status ? "success" : status.error().message();
}

TEST(CustomTest, ComputesAndAsksOnceForAShape) {
  int asked = 0;
  registerTest("Ops_Add", {[&](const CustomCall& call) {
                             ++asked;
                             return likeInput(call);
                           },
                           addOption});
  OperationBuilder builder(OperationType::kCustom);
  addHead(&builder, "Ops_Add").input({3}, std::vector<float>{1, 2, 3}).output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(13, 14, 15));
  EXPECT_EQ(asked, 1);
}

// The output's shape depends on values, so the operator is asked again in each run.
TEST(CustomTest, ShapesThatDependOnValuesAreAskedForInEachRun) {
  int asked = 0;
  registerTest("Ops_Repeat",
               {[&](const CustomCall& call) -> Result<CustomOutputs> {
                  ++asked;
                  if (call.inputs[0].data == nullptr) return CustomOutputs{true, {}};
                  const auto count = call.inputs[0].as<int32_t>()[0];
                  return CustomOutputs{false, {floats({static_cast<uint32_t>(count)})}};
                },
                [](const CustomCall& call) -> Status {
                  std::fill_n(call.outputs[0].as<float>(), call.outputs[0].elementCount(), 1.5f);
                  return {};
                }});
  OperationBuilder builder(OperationType::kCustom);
  addHead(&builder, "Ops_Repeat").input({1}, std::vector<int32_t>{2}).output();
  ASSERT_TRUE(builder.run());
  EXPECT_THAT(builder.result<float>(), ElementsAre(1.5f, 1.5f));
  EXPECT_EQ(asked, 2);
}

TEST(CustomTest, UnknownOperatorsAndOtherVersionsAreNotSupported) {
  registerTest("Ops_Version", {likeInput, addOption});
  for (const auto& [name, version, message] :
       {std::tuple{"Ops_Nobody", 5, "\"Ops_Nobody\" is not known"},
        std::tuple{"Ops_Version", 4, "version 4 of the custom operator \"Ops_Version\""}}) {
    OperationBuilder builder(OperationType::kCustom);
    addHead(&builder, name, version).input({3}, std::vector<float>{1, 2, 3}).output();
    const Status status = builder.validate();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::kUnsupported);
    EXPECT_THAT(status.error().message(), HasSubstr(message));
  }
}

TEST(CustomTest, ArgumentsOfAnotherKindAreBadData) {
  registerTest("Ops_Strict", {likeInput, addOption});
  const std::string name = "Ops_Strict";
  const std::vector<char> letters(name.begin(), name.end());
  const std::vector<uint8_t> option = {10};
  const auto add = [](auto change) {
    OperationBuilder builder(OperationType::kCustom);
    change(builder);
    return messageOf(builder.validate());
  };
  using Builder = OperationBuilder;
  EXPECT_THAT(add([&](Builder& b) { b.constant(bytesOf(10), letters).output(); }),
              HasSubstr("1 inputs"));
  EXPECT_THAT(add([&](Builder& b) {
                b.input(bytesOf(10), letters).scalar(5).scalar(2).constant(bytesOf(1), option);
                b.output();
              }),
              HasSubstr("Input 0 of CUSTOM must be a constant"));
  EXPECT_THAT(add([&](Builder& b) {
                b.constant(bytesOf(10), letters).scalar(5.0f).scalar(2);
                b.constant(bytesOf(1), option).output();
              }),
              HasSubstr("Input 1 of CUSTOM"));
  EXPECT_THAT(add([&](Builder& b) {
                b.constant(bytesOf(10), letters).scalar(5).scalar(2);
                b.input(bytesOf(1), option).output();
              }),
              HasSubstr("Input 3 of CUSTOM must be a constant"));
  EXPECT_THAT(add([&](Builder& b) { addHead(&b, name).scalar(7).output(); }),
              HasSubstr("it must be a tensor"));
  EXPECT_THAT(add([&](Builder& b) { addHead(&b, name).input({1}, std::vector<float>{1}); }),
              HasSubstr("0 outputs"));
  // Options may be omitted.
  EXPECT_EQ(add([&](Builder& b) {
              b.constant(bytesOf(10), letters).scalar(5).scalar(2);
              b.omitted(OperandType::kTensorQuant8Asymm).output();
            }),
            "success");
}

TEST(CustomTest, AnswersThatDoNotFitTheModelAreBadData) {
  const std::pair<CustomOutputs, const char*> wrong[] = {
      {{false, {}}, "describes 0 outputs of 1"},
      {{false, {floats({1}), floats({1})}}, "describes 2 outputs of 1"},
      {{false, {OperationBuilder::tensor(OperandType::kTensorInt32, {3})}},
       "makes output 0 TENSOR_INT32"},
      {{false, {floats({4})}}, "declared as"},
      {{false, {floats({1 << 30, 1 << 30, 1 << 30})}}, "declared as"},
      {{true, {}}, "has them all"},
  };
  for (size_t i = 0; i < std::size(wrong); ++i) {
    const std::string name = "Ops_Wrong_" + std::to_string(i);
    registerTest(name, {[answer = wrong[i].first](const CustomCall&) -> Result<CustomOutputs> {
                          return answer;
                        },
                        addOption});
    OperationBuilder builder(OperationType::kCustom);
    addHead(&builder, name).input({3}, std::vector<float>{1, 2, 3}).output(floats({3}));
    EXPECT_THAT(messageOf(builder.run()), HasSubstr(wrong[i].second));
  }
}

TEST(CustomTest, FailuresNameTheOperator) {
  registerTest("Ops_Failing", {likeInput, [](const CustomCall&) -> Status {
                                 return fail(ErrorCode::kOpFailed, "No luck.");
                               }});
  OperationBuilder builder(OperationType::kCustom);
  addHead(&builder, "Ops_Failing").input({3}, std::vector<float>{1, 2, 3}).output();
  const Status status = builder.run();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().toString(), HasSubstr("No luck. (in the custom operator \"Ops_F"));
}

TEST(CustomTest, NamesAreTakenOnce) {
  registerTest("Ops_Taken", {likeInput, addOption});
  EXPECT_THAT(messageOf(registerCustomOperator(
                  std::make_unique<TestOperator>("Ops_Taken", Functions{likeInput, addOption}))),
              HasSubstr("registered already"));
  EXPECT_THAT(messageOf(registerCustomOperator(
                  std::make_unique<TestOperator>("", Functions{likeInput, addOption}))),
              HasSubstr("0 bytes"));
  EXPECT_NE(findCustomOperator("Ops_Taken"), nullptr);
  EXPECT_EQ(findCustomOperator("Ops_Take"), nullptr);
}

TEST(CustomTest, OperatorsOfDevicesHaveTheShapesOfTheModelAndCannotBeComputed) {
  EXPECT_THAT(messageOf(registerDeviceOperator("")), HasSubstr("0 bytes"));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(registerDeviceOperator("Ops_Device"));
  ASSERT_NE(findCustomOperator("Ops_Device"), nullptr);
  EXPECT_TRUE(findCustomOperator("Ops_Device")->isOfDevice());
  OperationBuilder builder(OperationType::kCustom);
  addHead(&builder, "Ops_Device", 1).input({3}, std::vector<float>{1, 2, 3}).output(floats({2}));
  EXPECT_TRUE(builder.validate());
  EXPECT_THAT(messageOf(builder.run()), HasSubstr("Only a device computes"));
  OperationBuilder open(OperationType::kCustom);
  addHead(&open, "Ops_Device", 1).input({3}, std::vector<float>{1, 2, 3}).output(floats({0}));
  EXPECT_THAT(messageOf(open.run()), HasSubstr("does not say the shape of output 0"));
  // The program's own comes first.
  registerTest("Ops_Device", {likeInput, addOption});
  EXPECT_FALSE(findCustomOperator("Ops_Device")->isOfDevice());
}

}  // namespace
}  // namespace hearth::ops
