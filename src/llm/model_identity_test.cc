// SPDX-License-Identifier: Apache-2.0
#include "llm/model_identity.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cache/object/file_facts.h"

namespace hearth::llm {
namespace {

class ModelIdentityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "hearth-identity-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    auto store = cache::PrefixStore::open({.path = folder_ / "store"});
    ASSERT_TRUE(store) << store.error().message;
    store_ = *store;
    write("model", "one");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name) << content;
  }
  Result<base::Sha256Digest> digest() const {
    HEARTH_ASSIGN(const ModelIdentity identity, ModelIdentity::of(folder_ / "model"));
    return identity.digest(*store_);
  }

  std::filesystem::path folder_;
  std::shared_ptr<cache::PrefixStore> store_;
};

TEST_F(ModelIdentityTest, AFileThatChangedHasNoDigest) {
  auto identity = ModelIdentity::of(folder_ / "model");
  ASSERT_TRUE(identity);
  write("other", "one");
  std::filesystem::rename(folder_ / "other", folder_ / "model");
  EXPECT_FALSE(identity->digest(*store_));
  EXPECT_FALSE(ModelIdentity::of(folder_ / "missing"));
}

#ifdef HEARTH_TEST_HOOKS
// Files that were changed long ago.
class OldModelTest : public ModelIdentityTest {
 protected:
  void SetUp() override {
    ModelIdentityTest::SetUp();
    cache::changeFileFacts([](int, cache::FileFacts& facts) {
      facts.verity.reset();
      facts.modified -= kYear;
      facts.changed -= kYear;
    });
  }
  void TearDown() override {
    cache::changeFileFacts({});
    ModelIdentityTest::TearDown();
  }

 private:
  static constexpr int64_t kYear = int64_t{365} * 86400 * 1'000'000'000;
};

TEST_F(OldModelTest, ADigestDependsOnTheContent) {
  const auto first = digest();
  ASSERT_TRUE(first) << first.error().toString();
  EXPECT_EQ(digest().value(), *first);
  write("model", "two");
  const auto second = digest();
  ASSERT_TRUE(second) << second.error().toString();
  EXPECT_NE(*second, *first);
}
#endif

}  // namespace
}  // namespace hearth::llm
