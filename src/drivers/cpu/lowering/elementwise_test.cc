// SPDX-License-Identifier: Apache-2.0
// Sums, squared differences and activations give what the reference kernels give.
#include <gtest/gtest.h>

#include <vector>

#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/plan/plan_builder.h"
#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

// A whole tensor, a row for each row of the other tensor, on either side, and shapes that are not
// rows.
TEST(F32AddTest, EqualsTheReference) {
  const Dimensions whole = {3, 5, 67};
  for (const Dimensions& other : std::vector<Dimensions>{
           {3, 5, 67}, {67}, {1, 1, 67}, {5, 67}, {1, 5, 67}, {3, 1, 67}, {5, 1}, {1}}) {
    for (const bool isSwapped : {false, true}) {
      for (const int32_t activation : {0, 1}) {
        ModelBuilder builder;
        const Dimensions& first = isSwapped ? other : whole;
        const Dimensions& second = isSwapped ? whole : other;
        const uint32_t a = builder.input(kFloat, first);
        const uint32_t b = builder.input(kFloat, second);
        builder.operation(OperationType::kAdd, {a, b, builder.scalar(activation)},
                          {builder.output(kFloat, whole)});
        const auto compared =
            runBoth(builder.model(), {floatsFor(first, 1, 5.0f), floatsFor(second, 2, 5.0f)});
        ASSERT_TRUE(compared) << compared.error().toString();
        EXPECT_EQ(compared->made, compared->expected);
      }
    }
  }
}

// With activations that leave out a part of the numbers of the type: 1 is 10 steps, and 6 are 60.
TEST(ByteBinaryTest, ActivationsEqualTheReference) {
  const Dimensions whole = {3, 5, 67};
  for (const OperandType type : {kUint8, OperandType::kTensorQuant8AsymmSigned}) {
    const int32_t zero = type == kUint8 ? 120 : -8;
    for (const OperationType operation :
         {OperationType::kAdd, OperationType::kSub, OperationType::kMul}) {
      for (const Dimensions& other : std::vector<Dimensions>{whole, {67}, {3, 1, 67}}) {
        for (const int32_t activation : {1, 2, 3}) {
          ModelBuilder builder;
          const uint32_t a = builder.input(type, whole, 0.1f, zero);
          const uint32_t b = builder.input(type, other, 0.1f, zero);
          builder.operation(operation, {a, b, builder.scalar(activation)},
                            {builder.output(type, whole, 0.1f, zero)});
          EXPECT_EQ(
              differenceFromReference(
                  builder.model(), {randomBytes(countOf(whole), 1), randomBytes(countOf(other), 2)},
                  nullptr, 0.0f),
              "")
              << graph::nameOf(operation) << activation;
        }
      }
    }
  }
}

// Constant rows that repeat along the first dimensions, short and long, on either side.
TEST(ConstantRowTest, EqualsTheReference) {
  for (const uint32_t columns : {1u, 2u, 5u, 16u, 67u, 300u}) {
    for (const OperationType type :
         {OperationType::kSub, OperationType::kMul, OperationType::kDiv, OperationType::kPrelu}) {
      for (const bool isSwapped : {false, true}) {
        if (isSwapped && type == OperationType::kPrelu) continue;
        const Dimensions whole = {3, 14, 5, columns};
        ModelBuilder builder;
        const uint32_t a = builder.input(kFloat, whole);
        std::vector<float> row = randomFloats(columns, 2);
        for (float& value : row) value += 3.0f;
        const uint32_t b = builder.constant(kFloat, {1, 1, columns}, row);
        std::vector<uint32_t> inputs = {isSwapped ? b : a, isSwapped ? a : b};
        if (type != OperationType::kPrelu) inputs.push_back(builder.scalar(1));
        builder.operation(type, inputs, {builder.output(kFloat, whole)});
        const auto compared = runBoth(builder.model(), {floatsFor(whole, 1, 5.0f)});
        ASSERT_TRUE(compared) << compared.error().toString();
        EXPECT_EQ(compared->made, compared->expected) << columns << graph::nameOf(type);
      }
    }
  }
}

// A difference that only a square reads has no node of its own; any other has one.
TEST(SquaredDifferenceTest, EqualsTheReference) {
  const Dimensions whole = {3, 5, 67};
  enum class Reader { kSquare, kSquareAndOther, kProduct };
  for (const Dimensions& other : std::vector<Dimensions>{{3, 5, 67}, {67}, {3, 1, 67}, {1}}) {
    for (const Reader reader : {Reader::kSquare, Reader::kSquareAndOther, Reader::kProduct}) {
      for (const int32_t inner : {0, 1}) {
        for (const int32_t outer : {0, 3}) {
          ModelBuilder builder;
          const uint32_t a = builder.input(kFloat, whole);
          const uint32_t b = builder.input(kFloat, other);
          const uint32_t difference = builder.temporary(kFloat, whole);
          const uint32_t between = builder.temporary(kFloat, whole);
          builder.operation(OperationType::kSub, {a, b, builder.scalar(inner)}, {difference});
          builder.operation(OperationType::kAbs,
                            {reader == Reader::kSquareAndOther ? difference : a}, {between});
          const uint32_t square = builder.temporary(kFloat, whole);
          builder.operation(OperationType::kMul,
                            {difference, reader == Reader::kProduct ? between : difference,
                             builder.scalar(outer)},
                            {square});
          builder.operation(OperationType::kAdd, {square, between, builder.scalar(0)},
                            {builder.output(kFloat, whole)});
          const auto support = createCpuDevice()->explainOperations(builder.model());
          ASSERT_TRUE(support) << support.error().toString();
          EXPECT_EQ((*support)[2].kernel == "none", reader == Reader::kSquare && inner == 0);
          const auto compared =
              runBoth(builder.model(), {floatsFor(whole, 1, 5.0f), floatsFor(other, 2, 5.0f)});
          ASSERT_TRUE(compared) << compared.error().toString();
          EXPECT_EQ(compared->made, compared->expected);
        }
      }
    }
  }
}

// The square is the output of the model.
TEST(SquaredDifferenceTest, OfTheWholeModel) {
  ModelBuilder builder;
  const Dimensions shape = {2, 33};
  const uint32_t a = builder.input(kFloat, shape);
  const uint32_t b = builder.input(kFloat, shape);
  const uint32_t difference = builder.temporary(kFloat, shape);
  builder.operation(OperationType::kSub, {a, b, builder.scalar(0)}, {difference});
  builder.operation(OperationType::kMul, {difference, difference, builder.scalar(0)},
                    {builder.output(kFloat, shape)});
  EXPECT_EQ(
      differenceFromReference(builder.model(),
                              {floatsFor(shape, 1, 5.0f), floatsFor(shape, 2, 5.0f)}, "none", 0.0f),
      "");
}

// XNNPACK asserts that an activation leaves an integer more than one possible value.
TEST(ActivationTest, OfOneValue) {
  constexpr float kScale = 5.0f;  // RELU1 leaves the zero point
  for (const OperandType type : {kInt8, OperandType::kTensorQuant8Asymm}) {
    const int32_t zero = type == kInt8 ? -3 : 110;
    const Dimensions shape = {1, 6, 6, 8};
    const auto compare = [&](const auto& add) {
      ModelBuilder builder;
      const uint32_t data = builder.input(type, shape, kScale, zero);
      add(&builder, data);
      EXPECT_EQ(differenceFromReference(builder.model(), {randomBytes(288, 1)}, nullptr, 0.0f), "");
    };
    compare([&](ModelBuilder* builder, uint32_t data) {
      builder->operation(OperationType::kRelu1, {data},
                         {builder->output(type, shape, kScale, zero)});
    });
    compare([&](ModelBuilder* builder, uint32_t data) {
      builder->operation(OperationType::kAdd, {data, data, builder->scalar(2)},
                         {builder->output(type, shape, kScale, zero)});
    });
    for (const OperationType pool : {OperationType::kMaxPool2d, OperationType::kAveragePool2d})
      compare([&](ModelBuilder* builder, uint32_t data) {
        std::vector<uint32_t> inputs = {data};
        for (const int32_t number : {2, 1, 1, 3, 3, 2}) inputs.push_back(builder->scalar(number));
        builder->operation(pool, inputs, {builder->output(type, {1, 4, 4, 8}, kScale, zero)});
      });
    compare([&](ModelBuilder* builder, uint32_t data) {
      const uint32_t filter =
          builder->constant(type, {4, 8}, std::vector<uint8_t>(32, 3), 0.1f, type == kInt8 ? 0 : 7);
      const uint32_t bias = builder->constant(OperandType::kTensorInt32, {4},
                                              std::vector<int32_t>(4, 9), kScale * 0.1f);
      builder->operation(OperationType::kFullyConnected, {data, filter, bias, builder->scalar(2)},
                         {builder->output(type, {36, 4}, kScale, zero)});
    });
    compare([&](ModelBuilder* builder, uint32_t data) {
      const uint32_t filter = builder->constant(type, {4, 1, 1, 8}, std::vector<uint8_t>(32, 3),
                                                0.1f, type == kInt8 ? 0 : 7);
      const uint32_t bias = builder->constant(OperandType::kTensorInt32, {4},
                                              std::vector<int32_t>(4, 9), kScale * 0.1f);
      std::vector<uint32_t> inputs = {data, filter, bias};
      for (const int32_t number : {2, 1, 1, 2}) inputs.push_back(builder->scalar(number));
      builder->operation(OperationType::kConv2d, inputs,
                         {builder->output(type, {1, 6, 6, 4}, kScale, zero)});
    });
  }
}

// XNNPACK may assert that tensors have elements.
TEST(EmptyTensorTest, IsNothingForXnnpack) {
  ModelBuilder builder;
  const auto ints = [&](const std::vector<int32_t>& values) {
    return builder.constant(OperandType::kTensorInt32, {2}, values);
  };
  const uint32_t rows = builder.input(kFloat, {3, 4});
  const uint32_t none = builder.temporary(kFloat, {0, 4});
  builder.operation(OperationType::kSlice, {rows, ints({1, 0}), ints({0, 4})}, {none});
  builder.operation(OperationType::kAbs, {none}, {builder.output(kFloat, {0, 4})});
  PlanBuilder plan(builder.model(), nullptr, {});
  const Status built = plan.build();
  ASSERT_TRUE(built) << built.error().toString();
  const Plan made = plan.takePlan();
  ASSERT_EQ(made.nodes.size(), 2u);
  EXPECT_STREQ(made.nodes[1].name, "ABS");
  EXPECT_STREQ(made.nodes[1].kernel, "reference");
  EXPECT_EQ(made.nodes[1].whySlow, "a tensor has no elements");
}

}  // namespace
}  // namespace hearth::cpu
