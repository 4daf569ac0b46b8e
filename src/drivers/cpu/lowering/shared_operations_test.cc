// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/shared_operations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

// Threads reduce parts of the first dimension, which do not depend on the number of threads.
TEST(SharedOperationsTest, ThreadsChangeNoSumOfTheFirstDimension) {
  const Dimensions dimensions = {700, 1000};
  for (const std::vector<int32_t>& axes : std::vector<std::vector<int32_t>>{{0}, {0, 1}}) {
    for (const OperationType type :
         {OperationType::kReduceSum, OperationType::kReduceMax, OperationType::kReduceProd}) {
      ModelBuilder builder;
      const uint32_t data = builder.input(kFloat, dimensions);
      const uint32_t given =
          builder.constant(OperandType::kTensorInt32, {static_cast<uint32_t>(axes.size())}, axes);
      const uint32_t count = axes.size() == 1 ? 1000 : 1;
      builder.operation(type, {data, given, builder.scalar(false)},
                        {builder.output(kFloat, {count})});
      EXPECT_EQ(
          differenceFromReference(builder.model(), {floatsFor(dimensions, 1, 1.5f)}, "own", 0.0f),
          "");
    }
  }
}

// Shared kernels give the same results on several threads as on one. Tensors are large enough to be
// divided.
TEST(SharedOperationsTest, ThreadsChangeNothing) {
  const Dimensions dimensions = {30, 40, 50};
  const Bytes data = floatsFor(dimensions, 1);
  const auto expectSame = [&](OperationType type, std::vector<uint32_t> arguments,
                              ModelBuilder builder, OperandType outputType,
                              const Dimensions& output) {
    builder.operation(type, std::move(arguments), {builder.output(outputType, output)});
    EXPECT_EQ(differenceFromReference(builder.model(), {data}, "own", 0.0f), "")
        << graph::nameOf(type);
  };
  const auto ints = [](ModelBuilder* builder, const std::vector<int32_t>& values) {
    return builder->constant(OperandType::kTensorInt32, {static_cast<uint32_t>(values.size())},
                             values);
  };
  for (const OperationType type : {OperationType::kReduceSum, OperationType::kReduceMax}) {
    for (const std::vector<int32_t>& axes :
         std::vector<std::vector<int32_t>>{{1}, {2}, {0}, {0, 2}}) {
      ModelBuilder builder;
      const uint32_t input = builder.input(kFloat, dimensions);
      Dimensions kept = dimensions;
      for (const int32_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
      const uint32_t given = ints(&builder, axes);
      const uint32_t keeps = builder.scalar(true);
      expectSame(type, {input, given, keeps}, builder, kFloat, kept);
    }
  }
  for (const int32_t axis : {0, 1, 2}) {
    ModelBuilder builder;
    const uint32_t input = builder.input(kFloat, dimensions);
    Dimensions kept = dimensions;
    kept.erase(kept.begin() + axis);
    const uint32_t along = builder.scalar(axis);
    expectSame(OperationType::kArgmax, {input, along}, builder, OperandType::kTensorInt32, kept);
  }
  {
    ModelBuilder builder;
    const uint32_t input = builder.input(kFloat, dimensions);
    const uint32_t axis = builder.scalar(int32_t{1});
    const uint32_t rows = ints(&builder, {39, 0, 7, 7, 12});
    expectSame(OperationType::kGather, {input, axis, rows}, builder, kFloat, {30, 5, 50});
  }
  {
    ModelBuilder builder;
    const uint32_t input = builder.input(kFloat, dimensions);
    const uint32_t other = builder.constant(kFloat, {40, 1}, randomFloats(40, 2));
    expectSame(OperationType::kLess, {input, other}, builder, OperandType::kTensorBool8,
               dimensions);
  }
  {
    ModelBuilder builder;
    const uint32_t input = builder.input(kFloat, dimensions);
    expectSame(OperationType::kCast, {input}, builder, OperandType::kTensorInt32, dimensions);
  }
  {
    ModelBuilder builder;
    const uint32_t input = builder.input(kFloat, {1, 30, 40, 50});
    const uint32_t width = builder.scalar(int32_t{55});
    const uint32_t height = builder.scalar(int32_t{33});
    const uint32_t layout = builder.scalar(false);
    expectSame(OperationType::kResizeNearestNeighbor, {input, width, height, layout}, builder,
               kFloat, {1, 33, 55, 50});
  }
}

// Draws are divided by samples, and where there are more classes than these, by batch elements.
TEST(SharedOperationsTest, ThreadsChangeNoDraw) {
  struct Case {
    uint32_t batches, classes, samples;
  };
  for (const auto& [batches, classes, samples] : {Case{3, 7, 4001}, Case{301, 90, 11}}) {
    ModelBuilder builder;
    const uint32_t logits = builder.input(kFloat, {batches, classes});
    const uint32_t count = builder.constant(OperandType::kTensorInt32, {1},
                                            std::vector<int32_t>{static_cast<int32_t>(samples)});
    const uint32_t seeds =
        builder.constant(OperandType::kTensorInt64, {2}, std::vector<int64_t>{3, 4});
    const uint32_t position =
        builder.constant(OperandType::kTensorInt64, {1}, std::vector<int64_t>{5});
    const uint32_t numbers = builder.output(OperandType::kTensorInt32, {batches, samples});
    const uint32_t next = builder.output(OperandType::kTensorInt64, {1});
    builder.operation(OperationType::kMultinomial, {logits, count, seeds, position},
                      {numbers, next});
    const graph::Model model = builder.model();
    std::vector<Bytes> expected;
    for (const uint32_t threads : {1, 2, 3, 5}) {
      const auto prepared = createCpuDevice()->prepareModel(
          std::make_shared<const graph::Model>(model), {.threads = threads}, {});
      ASSERT_TRUE(prepared) << prepared.error().toString();
      const auto drawn = runPrepared(model, *prepared, {floatsFor({batches, classes}, 1)});
      ASSERT_TRUE(drawn) << drawn.error().toString();
      if (threads == 1) expected = *drawn;
      EXPECT_EQ(*drawn, expected) << threads << " threads";
    }
  }
}

// SIGN has one input, other operations on these kernels have two.
TEST(SharedOperationsTest, SignOfIntegers) {
  for (const OperandType type : {OperandType::kTensorInt32, OperandType::kTensorInt64}) {
    ModelBuilder builder;
    const uint32_t count = 64 / graph::elementSize(type);
    builder.operation(OperationType::kSign, {builder.input(type, {count})},
                      {builder.output(type, {count})});
    Bytes values = randomBytes(64, 1);
    std::fill_n(values.begin(), 8, uint8_t{0});
    EXPECT_EQ(differenceFromReference(builder.model(), {values}, "own", 0.0f), "");
  }
}

}  // namespace
}  // namespace hearth::cpu
