// SPDX-License-Identifier: Apache-2.0
#include "llm/executor_metadata.h"

#include <gmock/gmock.h>

#include <string>

namespace hearth::llm {
namespace {

using ::testing::HasSubstr;

std::string field(int number, const std::string& content) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(content.size()) +
         content;
}

std::string number(int field, int value) {
  return std::string(1, static_cast<char>(field << 3)) + static_cast<char>(value);
}

Result<ExecutorMetadata> read(const std::string& message) {
  return readExecutorMetadata({reinterpret_cast<const uint8_t*>(message.data()), message.size()});
}

TEST(ExecutorMetadataTest, CachesAndTheirAxesAreRead) {
  const std::string keys = field(1, "k_in") + field(2, "k_out") + field(3, "k_dec") +
                           field(4, "k_new") + number(6, 1) + number(7, 2);
  const std::string state = field(3, "s") + number(6, 5);
  const auto metadata =
      read(field(1, number(1, 9) + field(2, keys) + field(2, state) + field(3, number(3, 64))) +
           number(9, 1));
  ASSERT_TRUE(metadata) << metadata.error().toString();
  ASSERT_EQ(metadata->stateBuffers.size(), 2u);
  const StateBuffer& first = metadata->stateBuffers[0];
  EXPECT_EQ(first.prefillInput, "k_in");
  EXPECT_EQ(first.prefillOutput, "k_out");
  EXPECT_EQ(first.decodeInput, "k_dec");
  EXPECT_EQ(first.decodeOutput, "k_new");
  EXPECT_EQ(stateBufferTypeName(first.type), "global keys");
  EXPECT_EQ(first.sequenceAxis, 2u);
  EXPECT_EQ(stateBufferTypeName(metadata->stateBuffers[1].type), "linear attention");
  EXPECT_EQ(metadata->stateBuffers[1].sequenceAxis, std::nullopt);
  EXPECT_EQ(metadata->slidingWindow, 64u);
}

TEST(ExecutorMetadataTest, WhatCannotBeIsRefused) {
  const auto axis = read(field(1, field(2, number(7, 99))));
  ASSERT_FALSE(axis);
  EXPECT_THAT(axis.error().toString(), HasSubstr("axis 99"));
  EXPECT_FALSE(read(field(1, field(2, field(1, "\xFF")))));
  EXPECT_FALSE(read("\x0A\x05"));
}

}  // namespace
}  // namespace hearth::llm
