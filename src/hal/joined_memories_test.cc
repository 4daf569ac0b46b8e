// SPDX-License-Identifier: Apache-2.0
#include "hal/joined_memories.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "memory/pool.h"

namespace hearth::hal {
namespace {

using memory::Pool;
using memory::PoolRef;
using Access = memory::Mapping::Access;

constexpr size_t kSize = 10000;

base::Descriptor makeFile() {
  base::Descriptor file(::memfd_create("file", MFD_CLOEXEC));
  EXPECT_EQ(::ftruncate(file.get(), kSize), 0);
  return file;
}

class JoinedMemoriesTest : public testing::Test {
 protected:
  PoolRef of(uint64_t offset, size_t size, Access access = Access::kReadWrite) const {
    return *Pool::ofFile(file_.get(), offset, size, access);
  }
  static Argument in(PoolRef pool, uint64_t offset, uint64_t length) {
    Argument argument;
    argument.kind = Argument::Kind::kPool;
    argument.pool = std::move(pool);
    argument.offset = offset;
    argument.length = length;
    return argument;
  }
  static const uint8_t* begin(const Argument& argument) {
    return argument.pool->data() + argument.offset;
  }
  static bool isLeft(std::vector<Argument> inputs, std::vector<Argument> outputs) {
    const auto joined = joinMemories({std::move(inputs), std::move(outputs)});
    EXPECT_TRUE(joined) << joined.error().toString();
    return joined && !*joined;
  }

  const base::Descriptor file_ = makeFile();
};

TEST_F(JoinedMemoriesTest, ArgumentsThatOverlapAreInOneMapping) {
  const PoolRef whole = of(0, kSize), end = of(4097, 5000), other = *Pool::anonymous(kSize);
  for (size_t i = 0; i < kSize; ++i) whole->mutableData()[i] = static_cast<uint8_t>(i % 251);
  Request request{{in(whole, 5000, 100), in(other, 0, 50), in(whole, 0, 100)},
                  {in(end, 950, 60), in(other, 50, 50)},
                  123};
  request.inputs[0].dimensions = {25};
  const auto joined = joinMemories(request);
  ASSERT_TRUE(joined) << joined.error().toString();
  ASSERT_TRUE(*joined);
  const Argument& input = (*joined)->inputs[0];
  const Argument& output = (*joined)->outputs[0];
  EXPECT_EQ(input.pool, output.pool);
  EXPECT_EQ(begin(output) - begin(input), 4097 + 950 - 5000);
  EXPECT_EQ(*begin(input), 5000 % 251);
  EXPECT_EQ(*begin(output), (4097 + 950) % 251);
  EXPECT_TRUE(output.pool->contains(output.offset, output.length));
  EXPECT_TRUE(output.pool->writable());
  EXPECT_EQ(input.length, 100u);
  EXPECT_EQ(input.dimensions, graph::Dimensions{25});
  EXPECT_EQ((*joined)->loopTimeout, 123u);
  // The others are where they were.
  EXPECT_EQ((*joined)->inputs[1].pool, other);
  EXPECT_EQ((*joined)->inputs[2].pool, whole);
  EXPECT_EQ((*joined)->outputs[1].pool, other);
  // The file is the same.
  output.pool->mutableData()[output.offset] = 252;
  EXPECT_EQ(end->data()[950], 252);
}

TEST_F(JoinedMemoriesTest, AMemoryThatIsOnlyReadAndOutputsThatOverlap) {
  const PoolRef source = of(0, kSize, Access::kReadOnly), first = of(0, 5000),
                second = of(0, kSize);
  const auto joined = joinMemories(
      {{in(source, 0, 64)}, {in(first, 32, 64), in(second, 40, 64), in(second, 5000, 8)}});
  ASSERT_TRUE(joined) << joined.error().toString();
  ASSERT_TRUE(*joined);
  const PoolRef pool = (*joined)->outputs[0].pool;
  EXPECT_EQ((*joined)->inputs[0].pool, pool);
  EXPECT_EQ((*joined)->outputs[1].pool, pool);
  EXPECT_EQ((*joined)->outputs[2].pool, second);
}

TEST_F(JoinedMemoriesTest, TwoFilesAreMappedTwice) {
  const base::Descriptor file = makeFile();
  const auto ofOther = [&] {
    return *Pool::ofFile(file.get(), 0, kSize, Access::kReadWrite);
  };
  const auto joined = joinMemories({{in(of(0, kSize), 0, 8), in(ofOther(), 0, 8)},
                                    {in(of(0, kSize), 0, 8), in(ofOther(), 0, 8)}});
  ASSERT_TRUE(joined) << joined.error().toString();
  ASSERT_TRUE(*joined);
  EXPECT_EQ((*joined)->inputs[0].pool, (*joined)->outputs[0].pool);
  EXPECT_EQ((*joined)->inputs[1].pool, (*joined)->outputs[1].pool);
  EXPECT_NE((*joined)->inputs[0].pool, (*joined)->inputs[1].pool);
}

TEST_F(JoinedMemoriesTest, WhatDoesNotOverlapIsLeft) {
  const PoolRef first = of(0, kSize), second = of(0, kSize), other = *Pool::anonymous(kSize);
  EXPECT_TRUE(isLeft({in(first, 0, 8)}, {in(first, 0, 8)})) << "one memory";
  EXPECT_TRUE(isLeft({in(first, 0, 8)}, {in(second, 8, 8)}));
  EXPECT_TRUE(isLeft({in(first, 8, 8)}, {in(second, 0, 8)}));
  EXPECT_TRUE(isLeft({in(first, 0, 8)}, {in(other, 0, 8)}));
  EXPECT_TRUE(isLeft({in(first, 0, 8), in(second, 0, 8)}, {in(other, 0, 8)})) << "only read";
  EXPECT_TRUE(isLeft({in(first, 0, 0)}, {in(second, 0, 8)}));
  EXPECT_TRUE(isLeft({in(Pool::borrowed(first->data(), kSize), 0, 8)}, {in(second, 0, 8)}));
}

// Whoever checks the request says what is wrong with them.
TEST_F(JoinedMemoriesTest, WrongArgumentsAreLeft) {
  const PoolRef pool = of(0, kSize), readOnly = of(0, kSize, Access::kReadOnly);
  for (const Argument& wrong : {in(of(0, kSize), UINT64_MAX - 3, 8), in(of(0, kSize), 0, kSize + 1),
                                in(nullptr, 0, 8), Argument()}) {
    EXPECT_TRUE(isLeft({wrong}, {in(pool, 0, 8)}));
    EXPECT_TRUE(isLeft({in(pool, 0, 8)}, {wrong}));
  }
  EXPECT_TRUE(isLeft({in(pool, 0, 8)}, {in(readOnly, 0, 8)}));
}

// Each mapping of this device is other memory.
TEST_F(JoinedMemoriesTest, MemoriesOfADeviceAreLeft) {
  const base::Descriptor zero(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(zero.valid());
  const auto ofZero = [&] {
    return *Pool::ofFile(zero.get(), 0, kSize, Access::kReadWrite);
  };
  EXPECT_TRUE(isLeft({in(ofZero(), 0, 8)}, {in(ofZero(), 0, 8)}));
}

TEST_F(JoinedMemoriesTest, AFileThatHasBecomeShorterIsAnError) {
  const PoolRef first = of(0, kSize), second = of(0, kSize);
  ASSERT_EQ(::ftruncate(file_.get(), 0), 0);
  const auto joined = joinMemories({{in(first, 0, 8)}, {in(second, 0, 8)}});
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code(), ErrorCode::kOpFailed);
}

}  // namespace
}  // namespace hearth::hal
