// SPDX-License-Identifier: Apache-2.0
#include "llm/model_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "frontends/tflite/testing/container_writer.h"
#include "llm/testing/piece_model_writer.h"
#include "llm/testing/small_tokenizer.h"

namespace hearth::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tflite::litertlm::SectionType;

std::vector<uint8_t> bytesOf(std::string_view text) {
  return {text.begin(), text.end()};
}

std::string pieces() {
  return PieceModelWriter(SentencePieceModel::Kind::kUnigram)
      .add("<unk>", 0, PieceType::kUnknown)
      .add("a", -1)
      .add("b", -2)
      .setNormalizer(false, false)
      .write();
}

class ModelFileTest : public ::testing::Test {
 protected:
  ~ModelFileTest() override { std::filesystem::remove(path_); }

  const std::string& write(const std::vector<uint8_t>& bytes) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path_;
  }

 private:
  std::string path_ = std::filesystem::temp_directory_path() /
                      ("hearth-" + std::to_string(getpid()) + "-model-file.litertlm");
};

TEST_F(ModelFileTest, ATokenizerOfSentencePieceIsRead) {
  const std::string& path =
      write(tflite::litertlmOf({{SectionType::SP_Tokenizer, {}, bytesOf(pieces())}}));
  const auto file = readModelFile(path, "");
  ASSERT_TRUE(file) << file.error().toString();
  ASSERT_TRUE(file->tokenizer);
  EXPECT_THAT(file->tokenizer->encode("ab", SpecialTokens::kAreText).value(), ElementsAre(1, 2));
}

TEST_F(ModelFileTest, ADamagedTokenizerIsRefused) {
  const std::string whole = pieces();
  const std::string& path = write(tflite::litertlmOf(
      {{SectionType::SP_Tokenizer, {}, bytesOf(whole.substr(0, whole.size() - 1))}}));
  const auto file = readModelFile(path, "");
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().toString(), HasSubstr("while reading the tokenizer"));
}

TEST_F(ModelFileTest, ATokenizerMayBeAFileOfItsOwn) {
  EXPECT_EQ(readTokenizerFile(write(bytesOf(pieces())))->size(), 3);
  EXPECT_EQ(readTokenizerFile(write(bytesOf("\n " + smallTokenizerJson())))->size(), 34);
  EXPECT_FALSE(readTokenizerFile(write({})));
}

}  // namespace
}  // namespace hearth::llm
