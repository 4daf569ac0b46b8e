// SPDX-License-Identifier: Apache-2.0
#include "runtime/cache_file_state.h"

#include <gtest/gtest.h>

namespace hearth::runtime {
namespace {

hal::CacheToken sampleKey() {
  hal::CacheToken key{};
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<uint8_t>(7 * i + 16);
  return key;
}

TEST(CacheFileName, IsReadBack) {
  const hal::CacheToken key = sampleKey();
  for (const CacheFileKind kind : {CacheFileKind::kModel, CacheFileKind::kData})
    for (const uint32_t index : {0u, 9u, 10u, 31u}) {
      const std::string name = cacheFileName("", key, kind, index).substr(1);
      const auto parsed = parseCacheFileName(name);
      ASSERT_TRUE(parsed) << name;
      EXPECT_EQ(parsed->key, key);
      EXPECT_EQ(parsed->kind, kind);
      EXPECT_EQ(parsed->index, index);
      EXPECT_TRUE(name.starts_with(cacheKeyLetters(key)));
    }
}

TEST(CacheFileName, OtherNamesAreNone) {
  const std::string letters = cacheKeyLetters(sampleKey());
  ASSERT_TRUE(parseCacheFileName(letters + "10"));
  for (const std::string& name :
       {std::string(), letters, letters + "1", letters + "30", letters + "1x", letters + "1 0",
        letters + "1+1", letters + "1-1", letters + "101x", letters + "100", letters + "132",
        letters + "199999999999", letters.substr(1) + "10", "a" + letters.substr(1) + "10",
        "Q" + letters.substr(1) + "10", letters + "A10"})
    EXPECT_FALSE(parseCacheFileName(name)) << name;
}

}  // namespace
}  // namespace hearth::runtime
