// SPDX-License-Identifier: Apache-2.0
// What a device remembers of a vendor's library from start to start: which operations it takes, and
// the cache that the library keeps by itself.
#include "drivers/delegate/library_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "cache/testing/store_test_util.h"
#include "drivers/delegate/claims.h"
#include "drivers/delegate/delegate_device.h"
#include "drivers/delegate/kept_files.h"
#include "hal/cts/device_fixture.h"
#include "hal/cts/model_builder.h"

namespace hearth::drivers::delegate {
namespace {

using hal::StartReport;
using hal::cts::argumentFor;
using hal::cts::computeOnce;

// A library that keeps a file, and one that keeps a folder.
struct Kind {
  const char* name;
  CacheOption option;
};

class LibraryCacheTest : public testing::TestWithParam<Kind> {
 protected:
  // A device as another process would have it.
  std::shared_ptr<hal::Device> device(DelegateOptions more = {},
                                      cache::StoreMode mode = cache::StoreMode::kReadWrite) const {
    DelegateOptions options = {{"log", log()}};
    options.insert(options.end(), more.begin(), more.end());
    auto made =
        createDevice({.name = "npu",
                      .library = HEARTH_TEST_DELEGATES "/libvendor_delegate_20.so",
                      .options = options,
                      .version = {20},
                      .cache = GetParam().option,
                      .store = cache::StoreOptions{.path = store().string(), .mode = mode}});
    EXPECT_TRUE(made) << made.error().toString();
    return *made;
  }
  // Asks what the delegate takes, prepares and computes; how the model started.
  static StartReport start(hal::Device& device, uint32_t size = 4) {
    const auto model = std::make_shared<const graph::Model>(hal::cts::chainModel({size}));
    const auto supports = device.supportedOperations(*model);
    EXPECT_TRUE(supports && std::ranges::all_of(*supports, &hal::OperationSupport::supported));
    const auto prepared = device.prepareModel(model, {}, {});
    if (!prepared) {
      ADD_FAILURE() << prepared.error().toString();
      return {};
    }
    std::vector<float> a(size, 2), b(size, 1), out(size);
    const auto result =
        computeOnce(**prepared, {{argumentFor(a), argumentFor(b)}, {argumentFor(out)}});
    EXPECT_TRUE(result.status) << result.status.error().toString();
    EXPECT_THAT(out, testing::Each(5.0f));
    return (*prepared)->startReport();
  }
  // How often the library was offered a model ('o') or compiled one ('c').
  long count(char letter) const {
    const std::vector<uint8_t> letters = cache::readFile(log());
    return std::ranges::count(letters, static_cast<uint8_t>(letter));
  }
  std::filesystem::path store() const { return folder_.path() / "store"; }
  std::string log() const { return (folder_.path() / "log").string(); }
  // The tables of the store, apart from those with claims.
  std::vector<cache::TableKey> kept() const {
    std::vector<cache::TableKey> keys;
    const auto tables = openTables();
    for (const auto& file : std::filesystem::directory_iterator(store() / "tables")) {
      const auto key = cache::TableKey::fromHex(file.path().stem().string());
      const auto table = tables->read(*key);
      if (table && readKeptFiles({table->data(), table->size()})) keys.push_back(*key);
    }
    return keys;
  }
  std::shared_ptr<const cache::TableStore> openTables() const {
    return *cache::TableStore::open(
        {.path = store().string(), .kind = cache::TableKind::kDelegate});
  }
  // Puts files into the store in the place of what the library has left.
  void replaceKept(const std::string& text) const {
    const std::string from = (folder_.path() / "from").string();
    const bool isFolder = GetParam().option.isFolder;
    for (const cache::TableKey& key : kept()) {
      const std::string name = isFolder ? "kernels/" + key.hex() + ".bin" : "cache";
      std::filesystem::create_directories(std::filesystem::path(from + '/' + name).parent_path());
      std::ofstream(from + '/' + name) << text;
      ASSERT_TRUE(openTables()->write(key, *packFiles(from, 1 << 20)));
    }
  }

  cache::TempFolder folder_{cache::TempFolder::Place::kMemory};
};

TEST_P(LibraryCacheTest, TheSecondStartNeitherOffersTwiceNorCompiles) {
  const StartReport first = start(*device());
  EXPECT_EQ(first.state, StartReport::State::kCold) << first.reason;
  EXPECT_EQ(count('c'), 1);
  const long offers = count('o');
  const StartReport second = start(*device());
  EXPECT_EQ(second.state, StartReport::State::kWarm) << second.reason;
  EXPECT_GT(second.mappedBytes, 0u);
  EXPECT_EQ(count('c'), 1);
  // The second start makes the delegate that computes, and none to find out what it takes.
  EXPECT_EQ(count('o'), offers + 1);
}

TEST_P(LibraryCacheTest, AnotherModelOrOtherOptionsHaveAnotherCache) {
  start(*device());
  EXPECT_EQ(start(*device(), 5).state, StartReport::State::kCold);
  EXPECT_EQ(start(*device({{"level", "2"}})).state, StartReport::State::kCold);
  EXPECT_EQ(count('c'), 3);
  EXPECT_EQ(start(*device()).state, StartReport::State::kWarm);
}

TEST_P(LibraryCacheTest, ADamagedOneIsMadeAgain) {
  start(*device());
  for (const cache::TableKey& key : kept()) {
    const std::filesystem::path file = store() / "tables" / (key.hex() + ".delegate");
    std::vector<uint8_t> bytes = cache::readFile(file);
    bytes[40] ^= 1;
    cache::writeFile(file, bytes);
  }
  EXPECT_EQ(start(*device()).state, StartReport::State::kCold);
  EXPECT_EQ(count('c'), 2);
  EXPECT_EQ(start(*device()).state, StartReport::State::kWarm);
}

TEST_P(LibraryCacheTest, OneThatTheLibraryRefusesIsMadeAgain) {
  start(*device());
  ASSERT_EQ(kept().size(), 1u);
  replaceKept("of another version");
  EXPECT_EQ(start(*device()).state, StartReport::State::kCold);
  EXPECT_EQ(count('c'), 2);
  EXPECT_EQ(start(*device()).state, StartReport::State::kWarm);
}

TEST_P(LibraryCacheTest, OneWithWhichAProcessEndsIsMadeAgain) {
  start(*device());
  replaceKept("of another version");
  // A library that trusts its cache, and ends the process.
  const auto trusting = [&] {
    return start(*device({{"habit", "trust"}})).state;
  };
  trusting();
  const long compiled = count('c');
  replaceKept("of another version");
  EXPECT_FALSE(cache::succeeded(cache::inChild([&] {
    trusting();
    return 0;
  })));
  EXPECT_EQ(trusting(), StartReport::State::kCold);
  EXPECT_EQ(count('c'), compiled + 1);
  EXPECT_EQ(trusting(), StartReport::State::kWarm);
}

TEST_P(LibraryCacheTest, FoldersOfDelegatesGoWithThem) {
  start(*device());
  EXPECT_TRUE(std::filesystem::is_empty(store() / "delegates"));
}

TEST_P(LibraryCacheTest, WithoutAStoreTheLibraryCompilesAtEachStart) {
  for (int i = 1; i <= 2; ++i) {
    EXPECT_EQ(start(*device({}, cache::StoreMode::kOff)).state, StartReport::State::kUncached);
    EXPECT_EQ(count('c'), i);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, LibraryCacheTest,
    testing::Values(Kind{"file", {.option = "cache_file_path"}},
                    Kind{"folder",
                         {.option = "cache_dir", .isFolder = true, .tokenOption = "model_token"}}),
    [](const auto& info) { return info.param.name; });

TEST(ClaimsTest, ComeBackAsTheyWere) {
  const Claims::Supports supports = {{true, "own", ""},
                                     {false, "", "The delegate does not take MUL."}};
  const auto read = decodeClaims(encodeClaims(supports));
  ASSERT_TRUE(read) << read.error().toString();
  ASSERT_EQ(read->size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*read)[i].supported, supports[i].supported);
    EXPECT_EQ((*read)[i].kernel, supports[i].kernel);
    EXPECT_EQ((*read)[i].reason, supports[i].reason);
  }
}

TEST(ClaimsTest, OtherBytesAreNone) {
  for (const char* const text : {"", "{}", "[1]", "[\"\"", "null", "[null]"})
    EXPECT_FALSE(decodeClaims(text)) << text;
}

}  // namespace
}  // namespace hearth::drivers::delegate
