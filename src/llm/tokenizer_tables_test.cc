// SPDX-License-Identifier: Apache-2.0
#include "llm/tokenizer_tables.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "cache/object/file_facts.h"
#include "llm/testing/piece_model_writer.h"
#include "llm/testing/small_tokenizer.h"

namespace hearth::llm {
namespace {

class TokenizerTablesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "hearth-tables-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // The tokens of "hello", from the tables that are open now; how many tables are made meanwhile
  // is added to made_.
  std::vector<int32_t> encode(const std::string& json) {
    CompileOptions options;
    options.store = folder_;
    const auto tokenizer = open(TokenizerTables::of(options), json);
    EXPECT_TRUE(tokenizer) << tokenizer.error().toString();
    return tokenizer ? *tokenizer->encode("hello", SpecialTokens::kAreText)
                     : std::vector<int32_t>();
  }
  // A tokenizer of a file that has just been written, so that it proves nothing.
  Result<Tokenizer> open(const TokenizerTables& tables, const std::string& json) {
    std::ofstream(file()) << json;
    return openFile(tables);
  }
  Result<Tokenizer> openFile(const TokenizerTables& tables) {
    const auto opened = base::Descriptor::open(file(), O_RDONLY);
    const uint64_t size = std::filesystem::file_size(file());
    auto found = tables.tokenizer(
        "json", cache::ContentSource::of(opened->get(), 0, size),
        [&]() -> Result<std::vector<uint8_t>> {
          ++read_;
          std::ifstream stream(file(), std::ios::binary);
          return std::vector<uint8_t>(std::istreambuf_iterator<char>(stream), {});
        },
        [&](std::span<const uint8_t> bytes) {
          ++made_;
          return Tokenizer::tableOfJson(
              {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        });
    if (!found) return std::unexpected(found.error());
    table_ = found->table ? found->table->hex() : "";
    return std::move(found->tokenizer);
  }
  std::filesystem::path file() const { return folder_ / "tokenizer.json"; }
  std::filesystem::path onlyTable() const {
    const std::filesystem::directory_iterator tables(folder_ / "tables");
    EXPECT_EQ(std::distance(std::filesystem::begin(tables), std::filesystem::end(tables)), 1);
    return std::filesystem::directory_iterator(folder_ / "tables")->path();
  }

  const std::vector<int32_t> hello_ = {SmallTokens::kHello};
  std::filesystem::path folder_;
  int read_ = 0;
  int made_ = 0;
  std::string table_;  // the name of the last one in the store
};

TEST_F(TokenizerTablesTest, ATableIsMadeOnce) {
  EXPECT_EQ(encode(smallTokenizerJson()), hello_);
  EXPECT_EQ(onlyTable().stem(), table_);
  EXPECT_EQ(encode(smallTokenizerJson()), hello_);
  EXPECT_EQ(onlyTable().stem(), table_);
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(encode(smallTokenizerJson() + " "), hello_);  // another file
  EXPECT_EQ(made_, 2);
}

TEST_F(TokenizerTablesTest, ADamagedTableIsMadeAgain) {
  encode(smallTokenizerJson());
  const std::filesystem::path table = onlyTable();
  std::filesystem::permissions(table, std::filesystem::perms(0600));
  std::fstream(table, std::ios::in | std::ios::out).seekp(100).put('\x7f');
  EXPECT_EQ(encode(smallTokenizerJson()), hello_);
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(encode(smallTokenizerJson()), hello_);
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(onlyTable(), table);
}

// A file whose last change lies some time back.
TEST_F(TokenizerTablesTest, AKnownFileIsNotRead) {
  CompileOptions options;
  options.store = folder_;
  ASSERT_TRUE(open(TokenizerTables::of(options), smallTokenizerJson()));
  const auto opened = base::Descriptor::open(file(), O_RDONLY);
  const auto identity = cache::FileIdentity::of(opened->get());
  ASSERT_TRUE(identity);
  if (identity->proof == cache::ChangeProof::kNone) GTEST_SKIP() << "time stamps prove nothing";
  // The clock of files moves in steps of some milliseconds.
  std::this_thread::sleep_for(std::chrono::nanoseconds(cache::racyWindow(identity->proof)) +
                              std::chrono::milliseconds(50));
  ASSERT_TRUE(openFile(TokenizerTables::of(options)));
  EXPECT_EQ(read_, 2);
  ASSERT_TRUE(openFile(TokenizerTables::of(options)));
  EXPECT_EQ(read_, 2);
  EXPECT_EQ(made_, 1);
  // A change does not go unnoticed.
  ASSERT_TRUE(open(TokenizerTables::of(options), smallTokenizerJson() + " "));
  EXPECT_EQ(read_, 3);
  EXPECT_EQ(made_, 2);
}

TEST_F(TokenizerTablesTest, WithoutAStoreEachIsMadeAnew) {
  CompileOptions options;
  options.store = folder_;
  options.cache = HEARTH_CACHE_OFF;
  for (const TokenizerTables& tables : {TokenizerTables(), TokenizerTables::of(options)}) {
    EXPECT_TRUE(open(tables, smallTokenizerJson()));
    EXPECT_EQ(table_, "");
  }
  EXPECT_EQ(made_, 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "tables"));
}

TEST_F(TokenizerTablesTest, ATableThatIsCutOffIsRefused) {
  PieceModelWriter pieces(SentencePieceModel::Kind::kUnigram);
  pieces.add("<unk>", 0, PieceType::kUnknown).add("a", -1);
  const std::string message = pieces.write();
  const auto ofPieces = Tokenizer::tableOfSentencePiece(
      {reinterpret_cast<const uint8_t*>(message.data()), message.size()});
  const auto ofJson = Tokenizer::tableOfJson(smallTokenizerJson());
  ASSERT_TRUE(ofPieces);
  ASSERT_TRUE(ofJson);
  for (const std::vector<uint8_t>& table : {*ofPieces, *ofJson}) {
    EXPECT_TRUE(Tokenizer::fromTable(table, nullptr));
    for (size_t size = 0; size < table.size(); size += 7)
      EXPECT_FALSE(Tokenizer::fromTable(std::span(table).first(size), nullptr)) << size;
  }
}

}  // namespace
}  // namespace hearth::llm
