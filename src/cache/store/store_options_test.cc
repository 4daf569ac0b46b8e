// SPDX-License-Identifier: Apache-2.0
#include "cache/store/store_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/env.h"
#include "cache/open_store.h"
#include "cache/store/segment_store.h"

namespace hearth::cache {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Sets the relevant variables, and restores them.
class StoreOptionsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"HEARTH_STORE", "HEARTH_STORE_MODE", "HEARTH_STORE_SIZE",
                             "HEARTH_SYSTEM_STORES", "XDG_CACHE_HOME", "HOME"}) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      names_.push_back(name);
      ::unsetenv(name);
    }
  }
  void TearDown() override {
    base::internal::secureProcess = -1;
    for (const char* name : names_) {
      ::unsetenv(name);
      if (before_.contains(name)) ::setenv(name, before_[name].c_str(), 1);
    }
  }
  static void set(const char* name, const char* value) { ::setenv(name, value, 1); }

 private:
  std::vector<const char*> names_;
  std::map<std::string, std::string> before_;
};

TEST_F(StoreOptionsTest, TheStandardStoreLiesInTheUsersCacheFolder) {
  set("HOME", "/home/user");
  auto options = StoreOptions::fromEnvironment();
  ASSERT_TRUE(options);
  EXPECT_EQ(options->path, "/home/user/.cache/hearth/store");
  EXPECT_EQ(options->mode, StoreMode::kReadWrite);
  EXPECT_EQ(options->maxBytes, 0u);
  EXPECT_EQ(options->bundle, "");
  EXPECT_THAT(options->systemStores, ElementsAre("/usr/share/hearth/store"));
  set("XDG_CACHE_HOME", "/var/cache/user");
  EXPECT_EQ(StoreOptions::fromEnvironment()->path, "/var/cache/user/hearth/store");
  // By the XDG specification, a relative path must be ignored.
  set("XDG_CACHE_HOME", "cache");
  EXPECT_EQ(StoreOptions::fromEnvironment()->path, "/home/user/.cache/hearth/store");
}

TEST_F(StoreOptionsTest, EveryVariableCounts) {
  set("HEARTH_STORE", "/data/store");
  set("HEARTH_STORE_SIZE", "3G");
  set("HEARTH_SYSTEM_STORES", "/a::/b:");
  for (const auto& [word, mode] : {std::pair("off", StoreMode::kOff),
                                   {"read-only", StoreMode::kReadOnly},
                                   {"read-write", StoreMode::kReadWrite},
                                   {"strict", StoreMode::kStrict}}) {
    set("HEARTH_STORE_MODE", word);
    const auto options = StoreOptions::fromEnvironment();
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_EQ(options->mode, mode);
    EXPECT_EQ(options->path, "/data/store");
    EXPECT_EQ(options->maxBytes, uint64_t{3} << 30);
    EXPECT_THAT(options->systemStores, ElementsAre("/a", "/b"));
  }
}

TEST_F(StoreOptionsTest, WithoutAHomeOnlySystemStoresAreLeft) {
  const auto options = StoreOptions::fromEnvironment();
  ASSERT_TRUE(options);
  EXPECT_EQ(options->path, "");
  set("HOME", "relative");
  EXPECT_EQ(StoreOptions::fromEnvironment()->path, "");
  set("HEARTH_SYSTEM_STORES", ":");
  EXPECT_EQ(StoreOptions::fromEnvironment().error().reason, StoreReason::kNoHome);
}

TEST_F(StoreOptionsTest, ASetUidProcessHasNoStoreButTheSystems) {
  set("HEARTH_STORE", "/data/store");
  set("HEARTH_STORE_MODE", "off");
  set("HEARTH_STORE_SIZE", "1");
  set("HEARTH_SYSTEM_STORES", "/a:/b");
  set("XDG_CACHE_HOME", "/var/cache/user");
  set("HOME", "/home/user");
  base::internal::secureProcess = 1;
  auto options = StoreOptions::fromEnvironment();
  ASSERT_TRUE(options);
  EXPECT_EQ(options->path, "");
  EXPECT_EQ(options->mode, StoreMode::kReadWrite);
  EXPECT_EQ(options->maxBytes, 0u);
  EXPECT_THAT(options->systemStores, ElementsAre("/usr/share/hearth/store"));

  options->systemStores.clear();
  const StoreFailure failure = openSegmentStore(*options)->writability();
  EXPECT_EQ(failure.reason, StoreReason::kSetUid);
  EXPECT_THAT(failure.message, HasSubstr("set-uid"));
}

TEST_F(StoreOptionsTest, AWrongValueIsASentenceThatNamesVariableAndAllowedValues) {
  set("HOME", "/home/user");
  set("HEARTH_STORE_MODE", "fast");
  auto options = StoreOptions::fromEnvironment();
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().reason, StoreReason::kBadRequest);
  EXPECT_THAT(options.error().message, HasSubstr("HEARTH_STORE_MODE"));
  EXPECT_THAT(options.error().message, HasSubstr("\"fast\""));
  for (const char* word : {"off", "read-only", "read-write", "strict"})
    EXPECT_THAT(options.error().message, HasSubstr(word));
  set("HEARTH_STORE_MODE", "");
  for (const char* size : {"much", "-1", "1X", "1.5G", "99999999999T"}) {
    set("HEARTH_STORE_SIZE", size);
    options = StoreOptions::fromEnvironment();
    ASSERT_FALSE(options) << size;
    EXPECT_EQ(options.error().reason, StoreReason::kBadRequest);
    EXPECT_THAT(options.error().message, HasSubstr("HEARTH_STORE_SIZE"));
  }
}

TEST_F(StoreOptionsTest, EveryOptionCanBeGivenAsText) {
  set("HEARTH_STORE", "/data/store");
  for (const StoreMode mode :
       {StoreMode::kOff, StoreMode::kReadOnly, StoreMode::kReadWrite, StoreMode::kStrict}) {
    const StoreOptions options{.path = "",
                               .bundle = "/data/a bundle",
                               .mode = mode,
                               .maxBytes = UINT64_MAX,
                               .systemStores = {"/a", "/b c"}};
    const auto again = StoreOptions::fromTexts(options.toTexts());
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, options);
  }
}

TEST_F(StoreOptionsTest, OptionsThatTextsOmitComeFromTheEnvironment) {
  set("HEARTH_STORE", "/data/store");
  set("HEARTH_STORE_SIZE", "5M");
  set("HEARTH_SYSTEM_STORES", "/a");
  const auto options = StoreOptions::fromTexts({{"store_mode", "strict"}, {"another", "x"}});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->mode, StoreMode::kStrict);
  EXPECT_EQ(options->path, "/data/store");
  EXPECT_EQ(options->maxBytes, 5u << 20);
  EXPECT_THAT(options->systemStores, ElementsAre("/a"));
  // A wrong variable is an error for options that the texts omit.
  set("HEARTH_STORE_MODE", "fast");
  EXPECT_FALSE(StoreOptions::fromTexts({{"another", "x"}}));
  EXPECT_EQ(StoreOptions::fromTexts({{"store", "/other"}})->path, "/other");
}

TEST_F(StoreOptionsTest, WrongTextsAreRefused) {
  set("HEARTH_STORE", "/data/store");
  for (const auto& [name, value] :
       {std::pair("store_mode", "fast"), std::pair("store_mode", ""),
        std::pair("store_bytes", "-1"), std::pair("store_bytes", ""),
        std::pair("store_bytes", "5M"), std::pair("store_bytes", "18446744073709551616")}) {
    const auto options = StoreOptions::fromTexts({{name, value}});
    ASSERT_FALSE(options) << name << value;
    EXPECT_EQ(options.error().reason, StoreReason::kBadRequest);
    EXPECT_THAT(options.error().message, HasSubstr(std::string("\"") + value + "\""));
  }
}

}  // namespace
}  // namespace hearth::cache
