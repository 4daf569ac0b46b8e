// SPDX-License-Identifier: Apache-2.0
#include "tools/text_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace hearth::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TensorInfo tensor(std::vector<uint32_t> dimensions) {
  TensorInfo info;
  info.name = "text";
  info.type = HEARTH_TYPE_STRING;
  info.dimensions = std::move(dimensions);
  return info;
}

TEST(TextInputTest, OneElementIsTheWholeText) {
  for (const std::vector<uint32_t>& shape : {std::vector<uint32_t>{}, {1}, {1, 1}}) {
    const TextInput input = textInput("one\ntwo\n", tensor(shape)).value();
    EXPECT_THAT(input.texts, ElementsAre("one\ntwo"));
    EXPECT_EQ(input.dimensions, shape);
  }
  EXPECT_THAT(textInput("", tensor({1})).value().texts, ElementsAre(""));
}

TEST(TextInputTest, EachLineIsAnElement) {
  EXPECT_THAT(textInput("one\r\n\nthree", tensor({3, 1})).value().texts,
              ElementsAre("one", "", "three"));
  const TextInput open = textInput("a\nb\nc\nd\n", tensor({0, 2, 0})).value();
  EXPECT_THAT(open.texts, ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(open.dimensions, ElementsAre(2, 2, 1));
}

TEST(TextInputTest, ReadsAFile) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "text_input_test.txt";
  std::ofstream(path) << "from a file\n";
  EXPECT_THAT(textInput("@" + path.string(), tensor({1})).value().texts,
              ElementsAre("from a file"));
  std::filesystem::remove(path);
  EXPECT_FALSE(textInput("@" + path.string(), tensor({1})).has_value());
}

TEST(TextInputTest, RefusesAWrongNumberOfLines) {
  EXPECT_THAT(textInput("a\nb", tensor({3})).error().sentence, HasSubstr("takes 3 strings"));
  EXPECT_THAT(textInput("a", tensor({0, 2})).error().sentence, HasSubstr("one is given"));
  EXPECT_FALSE(textInput("", tensor({0})).has_value());
}

TEST(TextInputTest, WritesLines) {
  EXPECT_EQ(linesOf({"a", "", "b"}), "a\n\nb\n");
}

}  // namespace
}  // namespace hearth::tools
