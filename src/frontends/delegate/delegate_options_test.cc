// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/delegate_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace hearth::delegate {
namespace {

using testing::HasSubstr;
using Texts = std::vector<std::pair<std::string_view, std::string_view>>;

std::string errorOf(const Texts& texts) {
  const auto options = DelegateOptions::parse(texts);
  return options ? "" : options.error().toString();
}

TEST(DelegateOptions, AreReadByName) {
  const Texts texts = {{"allow_fp16", "yes"},
                       {"cache_dir", "/cache"},
                       {"device", "nnapi-reference"},
                       {"max_activation_bytes", "2M"},
                       {"model_token", "digits-7"},
                       {"preference", "sustained-speed"},
                       {"preparation", "just-in-time"},
                       {"priority", "high"},
                       {"store", "/store"},
                       {"store_bytes", "1G"},
                       {"store_mode", "strict"},
                       {"threads", "3"},
                       {"tuning", "off"},
                       {"weight_cache", "/one.bundle"}};
  const auto options = DelegateOptions::parse(texts);
  ASSERT_TRUE(options) << options.error().toString();
  EXPECT_TRUE(options->allowsFp16);
  EXPECT_EQ(options->cacheFolder, "/cache");
  EXPECT_EQ(options->modelToken, "digits-7");
  EXPECT_EQ(options->threads, 3u);
  const runtime::CompilationOptions& compilation = options->compilation;
  EXPECT_EQ(compilation.devices.size(), 1u);
  EXPECT_EQ(compilation.preparation, hal::Preparation::kJustInTime);
  EXPECT_EQ(compilation.isTuned, false);
  EXPECT_EQ(compilation.prepare.preference, hal::Preference::kSustainedSpeed);
  EXPECT_EQ(compilation.prepare.priority, hal::Priority::kHigh);
  EXPECT_EQ(compilation.prepare.maxActivationBytes, uint64_t{2} << 20);
  EXPECT_EQ(compilation.prepare.driverOptions,
            (std::map<std::string, std::string>{{"store", "/store"},
                                                {"store_bytes", "1073741824"},
                                                {"store_mode", "strict"},
                                                {"bundle", "/one.bundle"}}));
}

TEST(DelegateOptions, MissingOptionsHaveDefaults) {
  const auto options = DelegateOptions::parse({});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->threads, 0u);
  EXPECT_TRUE(options->compilation.devices.empty());
  EXPECT_TRUE(options->compilation.prepare.driverOptions.empty());
}

TEST(DelegateOptions, WrongOnesAreErrors) {
  EXPECT_THAT(errorOf({{"Threads", "1"}}),
              HasSubstr("\"Threads\" is not known; the delegate has "));
  EXPECT_THAT(errorOf({{"threads", "1"}, {"threads", "1"}}), HasSubstr("given twice"));
  EXPECT_THAT(errorOf({{"threads", "0"}}), HasSubstr("threads"));
  EXPECT_THAT(errorOf({{"allow_fp16", "maybe"}}), HasSubstr("allow_fp16"));
  EXPECT_THAT(errorOf({{"device", "abacus"}}), HasSubstr("abacus"));
  EXPECT_THAT(errorOf({{"cache_dir", "/cache"}}), HasSubstr("needs the option \"model_token\""));
  EXPECT_THAT(errorOf({{"model_token", "x"}}), HasSubstr("needs the option \"cache_dir\""));
  EXPECT_THAT(errorOf({{"store_mode", "fast"}}), HasSubstr("store_mode"));
}

}  // namespace
}  // namespace hearth::delegate
