// SPDX-License-Identifier: Apache-2.0
// Memory domains: buffers of the device in the roles of arguments. A device without memory of its
// own has the error kUnsupported, and its tests are skipped.
#include <utility>

#include "hal/cts/device_fixture.h"

namespace hearth::hal::cts {
namespace {

constexpr size_t kCount = 6;

class HalBuffers : public DeviceFixture {
 protected:
  void SetUp() override {
    DeviceFixture::SetUp();
    prepared_ = prepare(addModel({2, 3}));
  }

  Result<std::unique_ptr<Buffer>> allocate(std::vector<BufferRole> roles,
                                           graph::Dimensions dimensions = {}) {
    return device().allocate({std::move(dimensions)}, roles);
  }
  BufferRole input(uint32_t index) const { return {prepared_, true, index, 1.0f}; }
  BufferRole output() const { return {prepared_, false, 0, 1.0f}; }

  static Argument argumentOf(const Buffer& buffer) {
    Argument argument;
    argument.kind = Argument::Kind::kBuffer;
    argument.token = buffer.token();
    return argument;
  }
  static memory::PoolRef poolWith(const std::vector<float>& values) {
    return poolOf(values.data(), values.size() * sizeof(float));
  }
  static std::vector<float> valuesOf(Buffer& buffer) {
    const auto pool = *memory::Pool::anonymous(kCount * sizeof(float));
    const Status copied = buffer.copyTo(pool);
    EXPECT_TRUE(copied) << copied.error().toString();
    const auto* const values = reinterpret_cast<const float*>(pool->data());
    return {values, values + kCount};
  }

  std::shared_ptr<PreparedModel> prepared_;
};
HEARTH_CTS_SUITE(HalBuffers);

// Declares `buffer`, or skips the test when the device has no memory of its own.
#define HEARTH_CTS_ALLOCATE(buffer, ...)                                         \
  auto made_##buffer = allocate(__VA_ARGS__);                                    \
  if (!made_##buffer && made_##buffer.error().code() == ErrorCode::kUnsupported) \
    GTEST_SKIP() << made_##buffer.error().message();                             \
  ASSERT_TRUE(made_##buffer) << made_##buffer.error().toString();                \
  const std::unique_ptr<Buffer> buffer = std::move(*made_##buffer);              \
  ASSERT_NE(buffer, nullptr)

const std::vector<float> kOnes = {1, 1, 1, 1, 1, 1};
const std::vector<float> kNumbers = {1, 2, 3, 4, 5, 6};

TEST_P(HalBuffers, ValuesGoInAndOut) {
  if (prepared_ == nullptr) return;
  HEARTH_CTS_ALLOCATE(buffer, {input(0)});
  EXPECT_NE(buffer->token(), 0u);
  const Status copied = buffer->copyFrom(poolWith(kNumbers), {2, 3});
  ASSERT_TRUE(copied) << copied.error().toString();
  EXPECT_EQ(valuesOf(*buffer), kNumbers);
}

TEST_P(HalBuffers, ABufferIsOutputOfOneExecutionAndInputOfTheNext) {
  if (prepared_ == nullptr) return;
  HEARTH_CTS_ALLOCATE(first, {input(0), output()});
  HEARTH_CTS_ALLOCATE(second, {input(0), output()});
  ASSERT_TRUE(first->copyFrom(poolWith(kNumbers), {}));
  std::vector<float> ones = kOnes;
  for (const auto& [from, to] :
       {std::pair(first.get(), second.get()), std::pair(second.get(), first.get()),
        std::pair(first.get(), second.get())}) {
    const ExecutionResult result =
        computeOnce(*prepared_, {{argumentOf(*from), argumentFor(ones)}, {argumentOf(*to)}});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_EQ(result.outputShapes[0].dimensions, graph::Dimensions({2, 3}));
  }
  EXPECT_EQ(valuesOf(*second), std::vector<float>({4, 5, 6, 7, 8, 9}));
}

TEST_P(HalBuffers, AnExecutionComputesAgainWithWhatIsInItsBuffersThen) {
  if (prepared_ == nullptr) return;
  HEARTH_CTS_ALLOCATE(buffer, {input(0), input(1)});
  std::vector<float> sum(kCount);
  auto execution =
      prepared_->createExecution({{argumentOf(*buffer), argumentOf(*buffer)}, {argumentFor(sum)}});
  ASSERT_TRUE(execution) << execution.error().toString();
  for (const auto* const values : {&kOnes, &kNumbers}) {
    ASSERT_TRUE(buffer->copyFrom(poolWith(*values), {}));
    const ExecutionResult result = (*execution)->compute({});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(sum[i], 2 * (*values)[i]) << i;
  }
}

TEST_P(HalBuffers, WhatDoesNotFitIsRefused) {
  if (prepared_ == nullptr) return;
  HEARTH_CTS_ALLOCATE(buffer, {input(0)}, {2, 3});
  EXPECT_FALSE(allocate({}));
  EXPECT_FALSE(allocate({{prepared_, true, 2, 1.0f}})) << "there is no such input";
  EXPECT_FALSE(allocate({input(0)}, {3, 3})) << "other dimensions than the model's";
  EXPECT_FALSE(buffer->copyFrom(poolWith({1, 2, 3}), {})) << "too few bytes";
  EXPECT_FALSE(buffer->copyFrom(poolWith(kNumbers), {3, 2})) << "other dimensions";
  EXPECT_FALSE(buffer->copyTo(poolWith({1, 2, 3}))) << "too few bytes";
  std::vector<float> ones = kOnes;
  std::vector<float> sum(kCount);
  Argument unknown = argumentOf(*buffer);
  unknown.token += 1000;
  EXPECT_FALSE(computeOnce(*prepared_, {{unknown, argumentFor(ones)}, {argumentFor(sum)}}).status);
}

}  // namespace
}  // namespace hearth::hal::cts
