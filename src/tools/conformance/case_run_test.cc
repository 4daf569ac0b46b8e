// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/case_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "hal/testing/stub_devices.h"
#include "tools/conformance/devices.h"

namespace hearth::conformance {
namespace {

using ::testing::HasSubstr;

// Takes whatever the reference device takes, and fails to prepare it.
class BrokenDevice final : public hal::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(std::shared_ptr<const graph::Model>,
                                                           const hal::PrepareOptions&,
                                                           hal::Cache) override {
    return fail(ErrorCode::kOpFailed, "It is broken.");
  }
};

std::shared_ptr<hal::Device> reference() {
  const std::vector<DeviceFactory> devices = builtInDevices();
  const auto found = std::ranges::find(devices, "nnapi-reference", &DeviceFactory::name);
  return found == devices.end() ? nullptr : *found->create();
}

// RELU of -1, 2, which is 0, 2.
class CaseRunTest : public ::testing::Test {
 protected:
  CaseRunTest() {
    CaseSubgraph main;
    main.operands.resize(2);
    for (CaseOperand& operand : main.operands) {
      operand.type = graph::OperandType::kTensorFloat32;
      operand.dimensions = {2};
    }
    main.operands[0].lifetime = graph::Lifetime::kSubgraphInput;
    main.operands[0].data = bytesOf(input_);
    main.operands[1].lifetime = graph::Lifetime::kSubgraphOutput;
    main.operands[1].data = bytesOf(output_);
    graph::Operation operation;
    operation.type = graph::OperationType::kRelu;
    operation.inputs = {0};
    operation.outputs = {1};
    main.operations.push_back(operation);
    main.inputs = {0};
    main.outputs = {1};
    case_.subgraphs.push_back(std::move(main));
  }

  static std::span<const uint8_t> bytesOf(const std::array<float, 2>& numbers) {
    return {reinterpret_cast<const uint8_t*>(numbers.data()), sizeof numbers};
  }

  std::array<float, 2> input_ = {-1, 2};
  std::array<float, 2> output_ = {0, 2};
  Case case_;
  const std::shared_ptr<hal::Device> device_ = reference();
};

TEST_F(CaseRunTest, TheOutputsAreCompared) {
  ASSERT_NE(device_, nullptr);
  const CaseResult right = runCase(*device_, case_);
  EXPECT_TRUE(right.hasPassed) << right.message;
  output_[1] = 3;
  const CaseResult wrong = runCase(*device_, case_);
  EXPECT_FALSE(wrong.hasPassed);
  EXPECT_THAT(wrong.message, HasSubstr("1 of 2 elements differ"));
}

TEST_F(CaseRunTest, AModelThatIsNotPreparedHasFailed) {
  ASSERT_NE(device_, nullptr);
  BrokenDevice broken(device_);
  const CaseResult result = runCase(broken, case_);
  EXPECT_FALSE(result.hasPassed);
  EXPECT_THAT(result.message, HasSubstr("It is broken."));
  // Where a case must fail, it has, unless it is for an endless loop: the model of that is right.
  case_.flags = kExpectFailure;
  EXPECT_TRUE(runCase(broken, case_).hasPassed);
  case_.flags = kInfiniteLoop;
  EXPECT_FALSE(runCase(broken, case_).hasPassed);
}

TEST_F(CaseRunTest, ACaseThatMustFailAndDoesNotHasFailed) {
  ASSERT_NE(device_, nullptr);
  case_.flags = kExpectFailure;
  const CaseResult result = runCase(*device_, case_);
  EXPECT_FALSE(result.hasPassed);
  EXPECT_THAT(result.message, HasSubstr("must fail and does not"));
}

}  // namespace
}  // namespace hearth::conformance
