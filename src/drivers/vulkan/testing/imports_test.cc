// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/testing/imports_test.h"

#include <cstring>
#include <utility>

#include "drivers/vulkan/testing/test_gpu.h"

namespace hearth::vulkan {
namespace {

constexpr auto kFloat = graph::OperandType::kTensorFloat32;

}  // namespace

void ImportsTest::SetUp() {
  open_.gpu = openTestGpu();
  if (open_.gpu == nullptr) return;
  open_.gpu->factsForTest().leastImport = 1;
  for (uint32_t i = 0; i < kCount; ++i) {
    a_.push_back(static_cast<float>(i));
    b_.push_back(static_cast<float>(i % 7));
    expected_.push_back(a_.back() - b_.back());
  }
}

void ImportsTest::prepare() {
  hal::cts::ModelBuilder builder;
  addDifference(&builder);
  prepare(builder);
}

void ImportsTest::prepareWithCopy() {
  hal::cts::ModelBuilder builder;
  const uint32_t a = addDifference(&builder);
  const std::vector<int32_t> shape = {kCount};
  builder.operation(graph::OperationType::kReshape,
                    {a, builder.constant(graph::OperandType::kTensorInt32, {1}, shape)},
                    {builder.output(kFloat, {kCount})});
  prepare(builder);
}

uint32_t ImportsTest::addDifference(hal::cts::ModelBuilder* builder) {
  const uint32_t a = builder->input(kFloat, {kCount});
  const uint32_t b = builder->input(kFloat, {kCount});
  builder->operation(graph::OperationType::kSub, {a, b, builder->scalar(0)},
                     {builder->output(kFloat, {kCount})});
  return a;
}

void ImportsTest::prepare(hal::cts::ModelBuilder& builder) {
  open_.pipelines = *Pipelines::create(open_.gpu);
  auto prepared = VulkanPreparedModel::create(open_, builder.model(), {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  prepared_ = *std::move(prepared);
}

hal::Argument ImportsTest::in(const memory::PoolRef& pool, uint64_t offset) {
  hal::Argument argument;
  argument.kind = hal::Argument::Kind::kPool;
  argument.pool = pool;
  argument.offset = offset;
  argument.length = kBytes;
  return argument;
}

void ImportsTest::write(const memory::PoolRef& pool, uint64_t offset,
                        const std::vector<float>& from) {
  std::memcpy(pool->mutableData() + offset, from.data(), kBytes);
}

std::vector<float> ImportsTest::read(const memory::PoolRef& pool, uint64_t offset) {
  std::vector<float> values(kCount);
  std::memcpy(values.data(), pool->data() + offset, kBytes);
  return values;
}

uint64_t ImportsTest::run(const memory::PoolRef& pool, uint64_t a, uint64_t b, uint64_t output) {
  write(pool, a, a_);
  write(pool, b, b_);
  auto execution = prepared_->createExecution({{in(pool, a), in(pool, b)}, {in(pool, output)}});
  EXPECT_TRUE(execution) << execution.error().toString();
  if (!execution) return 0;
  const hal::ExecutionResult result = (*execution)->compute({});
  EXPECT_TRUE(result.status) << result.status.error().toString();
  EXPECT_EQ(read(pool, output), expected_);
  return result.copiedBytes;
}

uint64_t ImportsTest::runWithCopy(const memory::PoolRef& pool, const hal::Argument& difference) {
  write(pool, 0, a_);
  write(pool, kPlace, b_);
  auto execution = prepared_->createExecution(
      {{in(pool, 0), in(pool, kPlace)}, {difference, in(pool, 2 * kPlace)}});
  EXPECT_TRUE(execution) << execution.error().toString();
  if (!execution) return 0;
  const hal::ExecutionResult result = (*execution)->compute({});
  EXPECT_TRUE(result.status) << result.status.error().toString();
  EXPECT_EQ(read(pool, 2 * kPlace), a_);
  return result.copiedBytes;
}

}  // namespace hearth::vulkan
