// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/kept_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "cache/testing/store_test_util.h"

namespace hearth::drivers::delegate {
namespace {

using testing::HasSubstr;

class KeptFilesTest : public testing::Test {
 protected:
  KeptFilesTest() {
    std::filesystem::create_directories(from() + "/inside/deeper");
    std::filesystem::create_directories(to());
  }
  std::string from() const { return (folder_.path() / "from").string(); }
  std::string to() const { return (folder_.path() / "to").string(); }
  void write(const std::string& name, const std::string& text) const {
    cache::writeFile(from() + '/' + name,
                     {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }

  cache::TempFolder folder_{cache::TempFolder::Place::kMemory};
};

TEST_F(KeptFilesTest, ComeBackWithTheirFolders) {
  write("model.bin", std::string(300'000, 'm'));
  write("empty", "");
  write("inside/deeper/part 0", "part");
  const auto packed = packFiles(from(), 1 << 20);
  ASSERT_TRUE(packed) << packed.error().toString();
  const Status unpacked = unpackFiles(*packed, to());
  ASSERT_TRUE(unpacked) << unpacked.error().toString();
  const auto again = packFiles(to(), 1 << 20);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *packed);
  EXPECT_EQ(cache::readFile(to() + "/model.bin").size(), 300'000u);
}

TEST_F(KeptFilesTest, NoFilesAreNoBytes) {
  const auto packed = packFiles(from(), 1 << 20);
  ASSERT_TRUE(packed);
  EXPECT_TRUE(packed->empty());
}

TEST_F(KeptFilesTest, LinksAndTooManyBytesAreNotPacked) {
  write("large", std::string(2000, 'l'));
  EXPECT_FALSE(packFiles(from(), 1000));
  std::filesystem::create_symlink("/etc/hostname", from() + "/link");
  const auto packed = packFiles(from(), 1 << 20);
  ASSERT_FALSE(packed);
  EXPECT_THAT(packed.error().toString(), HasSubstr("link in the delegate's cache is neither"));
}

TEST_F(KeptFilesTest, DamagedBytesWriteNoFile) {
  write("a", "first");
  write("b", "second");
  const auto packed = packFiles(from(), 1 << 20);
  ASSERT_TRUE(packed);
  for (size_t size = 0; size < packed->size(); ++size)
    EXPECT_FALSE(readKeptFiles(std::span(*packed).first(size))) << size;
  std::vector<uint8_t> longer = *packed;
  longer.push_back(0);
  EXPECT_FALSE(readKeptFiles(longer));
  // The name of the first file, behind the two numbers and its sizes.
  constexpr size_t kName = 8 + 16;
  for (const char name : {'/', '.', '\0', 'b', 'c'}) {
    std::vector<uint8_t> renamed = *packed;
    renamed[kName] = static_cast<uint8_t>(name);
    EXPECT_FALSE(unpackFiles(renamed, to())) << static_cast<int>(name);
  }
  std::vector<uint8_t> huge = *packed;
  const uint64_t size = UINT64_MAX - 4;
  std::memcpy(huge.data() + 16, &size, sizeof size);
  EXPECT_FALSE(readKeptFiles(huge));
  EXPECT_TRUE(std::filesystem::is_empty(to()));
}

TEST_F(KeptFilesTest, NamesStayInsideTheFolder) {
  write("inside/deeper/x", "text");
  const auto packed = packFiles(from(), 1 << 20);
  ASSERT_TRUE(packed);
  for (const std::string_view name : {"../../deeper/x", "inside/../../x1", "/nside/deeper/x",
                                      "inside//eeper/x", "inside/deeper//", "inside/./eeper/x"}) {
    std::vector<uint8_t> renamed = *packed;
    std::memcpy(renamed.data() + 24, name.data(), std::min<size_t>(name.size(), 15));
    EXPECT_FALSE(readKeptFiles(renamed)) << name;
  }
}

}  // namespace
}  // namespace hearth::drivers::delegate
