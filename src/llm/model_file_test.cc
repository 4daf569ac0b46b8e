// SPDX-License-Identifier: Apache-2.0
#include "llm/model_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "frontends/tflite/testing/container_writer.h"
#include "llm/model_description.h"
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

TEST_F(ModelFileTest, ATaskFileIsRead) {
  const std::string metadata = "\x20\x02\x2A\x05<end>\x42\x0A\x12\x03<u>\x1A\x03<m>";
  const std::vector<tflite::ZipMember> members = {
      {"TF_LITE_PREFILL_DECODE", std::vector<uint8_t>(64)},
      {"TOKENIZER_MODEL", bytesOf(pieces())},
      {"METADATA", bytesOf(metadata)}};
  const auto file = readModelFile(write(tflite::zipOf(members)), "");
  ASSERT_TRUE(file) << file.error().toString();
  EXPECT_EQ(file->part, "TF_LITE_PREFILL_DECODE");
  EXPECT_EQ(file->tokenizer->size(), 3u);
  ASSERT_TRUE(file->metadata.startToken);
  EXPECT_THAT(file->metadata.startToken->ids, ElementsAre(2));
  ASSERT_EQ(file->metadata.stopTokens.size(), 1u);
  EXPECT_EQ(file->metadata.stopTokens[0].text, "<end>");
  ASSERT_TRUE(file->metadata.user);
  EXPECT_EQ(file->metadata.user->prefix, "<u>");
  EXPECT_EQ(file->metadata.user->suffix, "<m>");
  auto packed = members;
  packed[1].method = 8;
  packed[1].plainSize = 100;
  const auto refused = readModelFile(write(tflite::zipOf(packed)), "");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().toString(), HasSubstr("TOKENIZER_MODEL"));
}

TEST_F(ModelFileTest, WhatAFileSaysIsShown) {
  const std::string executor = std::string("\x0A\x09\x12\x07\x1A\x01k\x30\x02\x38\x03", 11);
  const std::string metadata = std::string("\x12\x03\x12\x01z\x28\x40", 7);
  const std::string& path =
      write(tflite::litertlmOf({{SectionType::SP_Tokenizer, {}, bytesOf(pieces())},
                                {SectionType::LlmMetadataProto, {}, bytesOf(metadata)},
                                {SectionType::ExecutorMetadataProto, {}, bytesOf(executor)}}));
  const auto file = readModelFile(path, "");
  ASSERT_TRUE(file) << file.error().toString();
  const auto shown = nlohmann::json::parse(describeLanguageModel(*file, "").value());
  EXPECT_EQ(shown["tokenizer"], "SentencePiece, unigram");
  EXPECT_EQ(shown["vocabulary"], 3);
  EXPECT_EQ(shown["context"], 64);
  EXPECT_EQ(shown["stop_texts"], nlohmann::json::parse(R"(["z"])"));
  EXPECT_EQ(shown["chat_template"], nullptr);
  EXPECT_EQ(
      shown["caches"],
      nlohmann::json::parse(R"([{"name": "k", "type": "global values", "sequence_axis": 3}])"));
}

TEST_F(ModelFileTest, ATokenizerMayBeAFileOfItsOwn) {
  EXPECT_EQ(readTokenizerFile(write(bytesOf(pieces())))->size(), 3);
  EXPECT_EQ(readTokenizerFile(write(bytesOf("\n " + smallTokenizerJson())))->size(), 34);
  EXPECT_FALSE(readTokenizerFile(write({})));
}

}  // namespace
}  // namespace hearth::llm
