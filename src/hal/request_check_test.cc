// SPDX-License-Identifier: Apache-2.0
#include "hal/request_check.h"

#include <gtest/gtest.h>

namespace hearth::hal {
namespace {

graph::Operand tensor(graph::Lifetime lifetime, graph::Dimensions dimensions) {
  graph::Operand operand;
  operand.dimensions = std::move(dimensions);
  operand.lifetime = lifetime;
  return operand;
}

// A subgraph with one input and one output of the given dimensions; its operations do not matter.
graph::Subgraph subgraph(graph::Dimensions input, graph::Dimensions output) {
  graph::Subgraph made;
  made.operands = {tensor(graph::Lifetime::kSubgraphInput, std::move(input)),
                   tensor(graph::Lifetime::kSubgraphOutput, std::move(output))};
  made.inputs = {0};
  made.outputs = {1};
  return made;
}

Argument pointer(void* data, uint64_t length, graph::Dimensions dimensions = {}) {
  Argument argument;
  argument.kind = Argument::Kind::kPointer;
  argument.pointer = data;
  argument.length = length;
  argument.dimensions = std::move(dimensions);
  return argument;
}

Argument inPool(memory::PoolRef pool, uint64_t offset, uint64_t length) {
  Argument argument;
  argument.kind = Argument::Kind::kPool;
  argument.pool = std::move(pool);
  argument.offset = offset;
  argument.length = length;
  return argument;
}

float memoryOfClient[64];

ErrorCode errorOf(const graph::Subgraph& main, Argument input, Argument output) {
  const auto bound = checkRequest(main, {{std::move(input)}, {std::move(output)}});
  return bound ? ErrorCode{0} : bound.error().code();
}

TEST(RequestCheck, ResolvesPointersAndPools) {
  auto pool = memory::Pool::anonymous(100);
  ASSERT_TRUE(pool);
  const auto bound =
      checkRequest(subgraph({2, 3}, {6}), {{inPool(*pool, 5, 24)}, {pointer(memoryOfClient, 24)}});
  ASSERT_TRUE(bound) << bound.error().toString();
  EXPECT_EQ(bound->inputs[0].data, (*pool)->data() + 5);
  EXPECT_EQ(bound->inputs[0].dimensions, graph::Dimensions({2, 3}));
  EXPECT_EQ(bound->outputs[0].data, memoryOfClient);
  EXPECT_EQ(bound->pools.size(), 1u);
}

TEST(RequestCheck, PointersOverlapWhereTwoMemoriesHaveTheSameBytes) {
  const auto pool = memory::Pool::anonymous(100);
  ASSERT_TRUE(pool);
  const auto other =
      memory::Pool::ofFile((*pool)->fd(), 0, 100, memory::Mapping::Access::kReadWrite);
  ASSERT_TRUE(other);
  const auto bound =
      checkRequest(subgraph({2}, {2}), {{inPool(*pool, 8, 8)}, {inPool(*other, 12, 8)}});
  ASSERT_TRUE(bound) << bound.error().toString();
  EXPECT_EQ(static_cast<uint8_t*>(bound->outputs[0].data),
            static_cast<uint8_t*>(bound->inputs[0].data) + 4);
}

TEST(RequestCheck, CountsMustAgree) {
  const graph::Subgraph main = subgraph({2}, {2});
  EXPECT_FALSE(checkRequest(main, {{}, {pointer(memoryOfClient, 8)}}));
  EXPECT_FALSE(checkRequest(main, {{pointer(memoryOfClient, 8)}, {}}));
  EXPECT_FALSE(checkRequest(main, {{pointer(memoryOfClient, 8), pointer(memoryOfClient, 8)},
                                   {pointer(memoryOfClient, 8)}}));
}

TEST(RequestCheck, LengthsMustBeExactWhereTheShapeIsKnown) {
  const graph::Subgraph main = subgraph({2}, {2});
  for (uint64_t length : {0, 7, 9, 16})
    EXPECT_EQ(errorOf(main, pointer(memoryOfClient, length), pointer(memoryOfClient, 8)),
              ErrorCode::kBadData);
  for (uint64_t length : {0, 7, 9, 16})
    EXPECT_EQ(errorOf(main, pointer(memoryOfClient, 8), pointer(memoryOfClient, length)),
              ErrorCode::kBadData);
  EXPECT_EQ(errorOf(subgraph({2}, {0}), pointer(memoryOfClient, 8), pointer(memoryOfClient, 3)),
            ErrorCode{0});
}

TEST(RequestCheck, RequestFillsUnknownAxesAndContradictsNone) {
  const graph::Subgraph main = subgraph({0, 3}, {0, 3});
  const Argument output = pointer(memoryOfClient, 24);
  EXPECT_EQ(errorOf(main, pointer(memoryOfClient, 24, {2, 3}), output), ErrorCode{0});
  EXPECT_EQ(errorOf(main, pointer(memoryOfClient, 24), output), ErrorCode::kBadData);
  EXPECT_EQ(errorOf(main, pointer(memoryOfClient, 24, {0, 3}), output), ErrorCode::kBadData);
  EXPECT_EQ(errorOf(main, pointer(memoryOfClient, 24, {3, 2}), output), ErrorCode::kBadData);
  EXPECT_EQ(errorOf(main, pointer(memoryOfClient, 24, {6}), output), ErrorCode::kBadData);
  EXPECT_EQ(
      errorOf(subgraph({}, {1}), pointer(memoryOfClient, 24, {6}), pointer(memoryOfClient, 4)),
      ErrorCode{0});
}

TEST(RequestCheck, DimensionsWhoseProductOverflowsAreRefused) {
  const graph::Dimensions huge = {0xffffffff, 0xffffffff, 0xffffffff};
  EXPECT_EQ(errorOf(subgraph({0, 0, 0}, {1}), pointer(memoryOfClient, 4, huge),
                    pointer(memoryOfClient, 4)),
            ErrorCode::kBadData);
  EXPECT_EQ(errorOf(subgraph({1}, {0, 0, 0}), pointer(memoryOfClient, 4),
                    pointer(memoryOfClient, 4, huge)),
            ErrorCode::kBadData);
}

TEST(RequestCheck, MemoryMustBeThere) {
  const graph::Subgraph main = subgraph({2}, {2});
  auto pool = memory::Pool::anonymous(100);
  ASSERT_TRUE(pool);
  const Argument good = pointer(memoryOfClient, 8);
  EXPECT_EQ(errorOf(main, pointer(nullptr, 8), good), ErrorCode::kBadData);
  EXPECT_EQ(errorOf(main, inPool(nullptr, 0, 8), good), ErrorCode::kBadData);
  EXPECT_EQ(errorOf(main, inPool(*pool, 93, 8), good), ErrorCode::kBadData);
  EXPECT_EQ(errorOf(main, inPool(*pool, UINT64_MAX, 8), good), ErrorCode::kBadData);
  EXPECT_EQ(errorOf(main, inPool(memory::Pool::borrowed(nullptr, 100), 0, 8), good),
            ErrorCode::kOpFailed);
  EXPECT_EQ(errorOf(main, good, inPool(memory::Pool::borrowed(memoryOfClient, 100), 0, 8)),
            ErrorCode::kOpFailed);
  Argument token;
  token.kind = Argument::Kind::kBuffer;
  token.token = 3;
  EXPECT_EQ(errorOf(main, token, good), ErrorCode::kBadData);
}

TEST(RequestCheck, AnErrorSaysWhichArgument) {
  const auto bound = checkRequest(subgraph({2}, {2}),
                                  {{pointer(memoryOfClient, 8)}, {pointer(memoryOfClient, 9)}});
  ASSERT_FALSE(bound);
  EXPECT_NE(bound.error().toString().find("output 0"), std::string::npos);
}

}  // namespace
}  // namespace hearth::hal
