// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/testing/reference_test.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "drivers/vulkan/testing/validated_device.h"
#include "hal/interpreted_model.h"

namespace hearth::vulkan {

Result<std::vector<uint8_t>> computeModel(hal::PreparedModel& prepared, const graph::Model& model,
                                          std::vector<std::vector<uint8_t>> inputs) {
  const graph::Subgraph& main = model.main();
  HEARTH_ASSIGN(const uint64_t size, graph::byteSize(main.operands[main.outputs[0]]));
  std::vector<uint8_t> result(size);
  hal::Request request;
  const auto argumentOf = [](std::vector<uint8_t>& values) {
    hal::Argument argument;
    argument.kind = hal::Argument::Kind::kPointer;
    argument.pointer = values.data();
    argument.length = values.size();
    return argument;
  };
  for (std::vector<uint8_t>& input : inputs) request.inputs.push_back(argumentOf(input));
  request.outputs.push_back(argumentOf(result));
  HEARTH_ASSIGN(const auto execution, prepared.createExecution(std::move(request)));
  HEARTH_TRY(execution->compute({}).status);
  return result;
}

void ReferenceTest::SetUp() {
  auto device = createValidatedDevice();
  if (!device && device.error().code() == ErrorCode::kUnsupported)
    GTEST_SKIP() << device.error().toString();
  ASSERT_TRUE(device) << device.error().toString();
  device_ = *std::move(device);
}

std::vector<uint8_t> ReferenceTest::bytes(size_t count) {
  std::vector<uint8_t> values(count);
  for (uint8_t& value : values) value = static_cast<uint8_t>(random_());
  return values;
}

std::vector<uint8_t> ReferenceTest::reals(size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random_() % 4001) / 1000 - 2;
  std::vector<uint8_t> stored(count * sizeof(float));
  std::memcpy(stored.data(), values.data(), stored.size());
  return stored;
}

void ReferenceTest::computeBoth(const hal::cts::ModelBuilder& builder,
                                const std::vector<std::vector<uint8_t>>& inputs, Results* results) {
  const auto model = std::make_shared<const graph::Model>(builder.model());
  const auto reference =
      hal::prepareInterpreted(model, {}, nullptr, "", nullptr, ops::KernelSet::kReference);
  ASSERT_TRUE(reference) << reference.error().toString();
  const auto prepared = device_->prepareModel(model, {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  auto computed = computeModel(**prepared, *model, inputs);
  ASSERT_TRUE(computed) << computed.error().toString();
  auto expected = computeModel(**reference, *model, inputs);
  ASSERT_TRUE(expected) << expected.error().toString();
  *results = {*std::move(computed), *std::move(expected)};
}

void ReferenceTest::expectReference(const hal::cts::ModelBuilder& builder,
                                    const std::vector<std::vector<uint8_t>>& inputs) {
  Results results;
  ASSERT_NO_FATAL_FAILURE(computeBoth(builder, inputs, &results));
  EXPECT_EQ(results.computed, results.expected);
}

void ReferenceTest::expectNearReference(const hal::cts::ModelBuilder& builder,
                                        const std::vector<std::vector<uint8_t>>& inputs,
                                        float tolerance) {
  Results results;
  ASSERT_NO_FATAL_FAILURE(computeBoth(builder, inputs, &results));
  for (size_t at = 0; at < results.expected.size(); at += sizeof(float)) {
    float computed, expected;
    std::memcpy(&computed, results.computed.data() + at, sizeof computed);
    std::memcpy(&expected, results.expected.data() + at, sizeof expected);
    ASSERT_NEAR(computed, expected, tolerance * std::max(1.0f, std::abs(expected)))
        << "element " << at / sizeof(float);
  }
}

}  // namespace hearth::vulkan
