// SPDX-License-Identifier: Apache-2.0
#include "base/env.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "base/passed_variables.h"

namespace hearth::base {
namespace {

class EnvTest : public testing::Test {
 protected:
  void TearDown() override {
    unsetenv("HEARTH_LOG");
    unsetenv("HEARTH_THREADS");
    internal::secureProcess = -1;
  }
};

TEST_F(EnvTest, EveryStandardValueIsValidAndEveryNameUnique) {
  std::set<std::string> names;
  for (const EnvVariable& variable : environmentVariables()) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    EXPECT_FALSE(std::string_view(variable.meaning).empty());
    switch (variable.kind) {
      case EnvKind::kString:
        break;
      case EnvKind::kChoice:
        EXPECT_TRUE(parseChoice(variable.name, variable.standard, variable.choices));
        break;
      case EnvKind::kInteger:
        EXPECT_TRUE(parseInteger(variable.name, variable.standard, variable.least, variable.most));
        break;
      case EnvKind::kBytes:
        EXPECT_TRUE(parseBytes(variable.name, variable.standard));
        break;
    }
  }
}

TEST_F(EnvTest, UnsetAndEmptyGiveTheStandardValue) {
  unsetenv("HEARTH_LOG");
  EXPECT_EQ(envChoice(Env::kLog).value(), "warn");
  setenv("HEARTH_LOG", "", 1);
  EXPECT_EQ(envChoice(Env::kLog).value(), "warn");
  setenv("HEARTH_LOG", "debug", 1);
  EXPECT_EQ(envChoice(Env::kLog).value(), "debug");
}

TEST_F(EnvTest, BadValuesGiveASentenceWithNameValueAndLimit) {
  setenv("HEARTH_LOG", "loud", 1);
  EXPECT_EQ(envChoice(Env::kLog).error().toString(),
            "HEARTH_LOG is \"loud\", which is none of trace|debug|info|warn|error|off.");
  setenv("HEARTH_THREADS", "many", 1);
  EXPECT_EQ(envInteger(Env::kThreads).error().toString(),
            "HEARTH_THREADS is \"many\", which is no whole number.");
  setenv("HEARTH_THREADS", "2000", 1);
  EXPECT_EQ(envInteger(Env::kThreads).error().toString(),
            "HEARTH_THREADS is 2000, outside 0 to 1024.");
  setenv("HEARTH_THREADS", "-1", 1);
  EXPECT_FALSE(envInteger(Env::kThreads));
}

TEST_F(EnvTest, AVariableIsReadAsItsOwnKindOnly) {
  EXPECT_EQ(envInteger(Env::kLog).error().code(), ErrorCode::kBadState);
  EXPECT_EQ(envBytes(Env::kThreads).error().code(), ErrorCode::kBadState);
}

TEST_F(EnvTest, ASetUidProcessIgnoresTheEnvironment) {
  std::vector<std::string> before;
  for (const EnvVariable& variable : environmentVariables()) {
    const char* value = std::getenv(variable.name);
    before.emplace_back(value != nullptr ? value : "");
    setenv(variable.name, "/tmp/attack", 1);
  }
  EXPECT_FALSE(isSecureProcess());
  EXPECT_EQ(envString(Env::kDriverPath), "/tmp/attack");
  EXPECT_EQ(envFolder(Env::kHome), "/tmp/attack");
  internal::secureProcess = 1;
  EXPECT_TRUE(isSecureProcess());
  for (const EnvVariable& variable : environmentVariables())
    EXPECT_EQ(envString(variable.id), variable.standard) << variable.name;
  EXPECT_EQ(envChoice(Env::kLog).value(), "warn");
  EXPECT_EQ(envFolder(Env::kHome), "");
  for (size_t i = 0; i < before.size(); ++i) {
    const char* const name = environmentVariables()[i].name;
    before[i].empty() ? unsetenv(name) : setenv(name, before[i].c_str(), 1);
  }
}

TEST_F(EnvTest, VariablesOfOthersArePassedOn) {
  const std::vector<std::string> names = {"VK_DRIVER_FILES", "HEARTH_TEST_UNSET",
                                          "HEARTH_TEST_EMPTY"};
  setenv("VK_DRIVER_FILES", "/a.json:/b.json", 1);
  setenv("HEARTH_TEST_EMPTY", "", 1);
  EXPECT_EQ(passedVariables(names),
            (std::vector<std::string>{"VK_DRIVER_FILES=/a.json:/b.json", "HEARTH_TEST_EMPTY="}));
  internal::secureProcess = 1;
  EXPECT_TRUE(passedVariables(names).empty());
  unsetenv("VK_DRIVER_FILES");
  unsetenv("HEARTH_TEST_EMPTY");
}

TEST_F(EnvTest, AFolderIsAnAbsolutePath) {
  setenv("HEARTH_STORE", "here", 1);
  EXPECT_EQ(envFolder(Env::kStore), "");
  setenv("HEARTH_STORE", "/here", 1);
  EXPECT_EQ(envFolder(Env::kStore), "/here");
  unsetenv("HEARTH_STORE");
}

TEST(ParseChoice, APartOfAWordIsRefused) {
  EXPECT_FALSE(parseChoice("x", "of", "off|on"));
  EXPECT_FALSE(parseChoice("x", "", "off|on"));
  EXPECT_FALSE(parseChoice("x", "off|on", "off|on"));
  EXPECT_TRUE(parseChoice("x", "on", "off|on"));
}

TEST(ParseInteger, TakesTheWholeTextOnly) {
  EXPECT_EQ(parseInteger("x", "-7", -10, 10).value(), -7);
  for (const char* bad : {"", "7x", " 7", "0x10", "99999999999999999999"})
    EXPECT_FALSE(parseInteger("x", bad, INT64_MIN, INT64_MAX)) << bad;
}

TEST(ParseBytes, UnitsArePowersOf1024) {
  EXPECT_EQ(parseBytes("x", "0").value(), 0u);
  EXPECT_EQ(parseBytes("x", "17").value(), 17u);
  EXPECT_EQ(parseBytes("x", "3K").value(), 3072u);
  EXPECT_EQ(parseBytes("x", "2m").value(), 2u << 20);
  EXPECT_EQ(parseBytes("x", "16G").value(), uint64_t{16} << 30);
  EXPECT_EQ(parseBytes("x", "1T").value(), uint64_t{1} << 40);
}

TEST(ParseBytes, RefusesTextThatIsNoSize) {
  for (const char* bad : {"", "K", "-1", "1.5G", "1KB", "1 K", "1X", "18446744073709551616",
                          "18014398509481984K", "16777216T"})
    EXPECT_FALSE(parseBytes("x", bad)) << bad;
  EXPECT_EQ(parseBytes("x", "18014398509481983K").value(), UINT64_MAX - 1023);
}

}  // namespace
}  // namespace hearth::base
