// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_word.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace hearth::base {
namespace {

const std::array<std::string, 7> kCommands = {"run",   "bench", "inspect",    "devices",
                                              "serve", "cache", "conformance"};

TEST(NearestWordTest, OneMistakeOfEachKind) {
  EXPECT_EQ(nearestWord("inspct", kCommands), "inspect");
  EXPECT_EQ(nearestWord("inspeect", kCommands), "inspect");
  EXPECT_EQ(nearestWord("inspekt", kCommands), "inspect");
  EXPECT_EQ(nearestWord("isnpect", kCommands), "inspect");
  EXPECT_EQ(nearestWord("rnu", kCommands), "run");
}

TEST(NearestWordTest, BeginningsAreNear) {
  EXPECT_EQ(nearestWord("conf", kCommands), "conformance");
  EXPECT_EQ(nearestWord("benchmark", kCommands), "bench");
}

TEST(NearestWordTest, TheFewestMistakesWin) {
  const std::array<std::string, 3> words = {"warm", "warn", "word"};
  EXPECT_EQ(nearestWord("warn", words), "warn");
  EXPECT_EQ(nearestWord("wram", words), "warm");
}

TEST(NearestWordTest, FarWordsAndSingleLettersAreNotGuessed) {
  EXPECT_EQ(nearestWord("fly", kCommands), std::nullopt);
  EXPECT_EQ(nearestWord("r", kCommands), std::nullopt);
  EXPECT_EQ(nearestWord("", kCommands), std::nullopt);
  EXPECT_EQ(nearestWord(std::string(100'000, 'n'), kCommands), std::nullopt);
  EXPECT_EQ(nearestWord("run", {}), std::nullopt);
  // What stands before the word does not count.
  const std::array<std::string, 1> far = {"zzzaxb"};
  EXPECT_EQ(nearestWord(std::string_view("xab").substr(1), far), std::nullopt);
}

}  // namespace
}  // namespace hearth::base
