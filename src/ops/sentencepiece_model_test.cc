// SPDX-License-Identifier: Apache-2.0
#include "ops/sentencepiece_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "ops/testing/sentencepiece_writer.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What a model makes of a text; fails the test where it makes nothing.
std::vector<int32_t> codesOf(const SentencepieceContent& content, std::string_view text,
                             const SentencepieceModel::Marks& marks = {}) {
  const std::vector<uint8_t> bytes = content.write();
  const auto model = SentencepieceModel::read(bytes);
  EXPECT_TRUE(model) << model.error().toString();
  if (!model) return {};
  const auto codes = model->encode(text, marks);
  EXPECT_TRUE(codes) << codes.error().toString();
  return codes.value_or(std::vector<int32_t>());
}

std::string normalized(const SentencepieceContent& content, std::string_view text) {
  const std::vector<uint8_t> bytes = content.write();
  return *SentencepieceModel::read(bytes)->normalize(text);
}

TEST(SentencepieceModelTest, TheMostProbablePiecesAreTaken) {
  const SentencepieceContent content = smallSentencepieceModel();
  EXPECT_THAT(codesOf(content, "ab"), ElementsAre(7));
  // "abba" is one piece, less probable than its parts.
  EXPECT_THAT(codesOf(content, "abba"), ElementsAre(7, 5, 4));
  EXPECT_THAT(codesOf(content, "b ab"), ElementsAre(8, 7));
  EXPECT_THAT(codesOf(content, "\u00e4"), ElementsAre(3, 9));
  EXPECT_THAT(codesOf(content, ""), IsEmpty());
}

TEST(SentencepieceModelTest, UnknownBytesInARowAreOnePiece) {
  EXPECT_THAT(codesOf(smallSentencepieceModel(), "xyz\xff b"), ElementsAre(3, 0, 8));
  SentencepieceContent content = smallSentencepieceModel();
  content.unknown = -1;
  EXPECT_THAT(codesOf(content, "xyz"), IsEmpty());
}

TEST(SentencepieceModelTest, CodesAreMarkedReversedAndShifted) {
  SentencepieceContent content = smallSentencepieceModel();
  EXPECT_THAT(codesOf(content, "ab b", {.hasBegin = true, .hasEnd = true, .isReversed = false}),
              ElementsAre(1, 7, 8, 2));
  EXPECT_THAT(codesOf(content, "ab b", {.hasBegin = false, .hasEnd = true, .isReversed = true}),
              ElementsAre(2, 8, 7));
  content.firstCode = 100;
  // The code of what is unknown stays.
  EXPECT_THAT(codesOf(content, "ab x"), ElementsAre(107, 103, 0));
}

TEST(SentencepieceModelTest, TextsAreNormalized) {
  SentencepieceContent content = smallSentencepieceModel();
  EXPECT_EQ(normalized(content, "  A\t a\u0308\n\n"), "\u2581a\u2581\u00e4");
  content.marksSpaces = false;
  EXPECT_EQ(normalized(content, "b  b "), " b b");
  content.removesSpaces = false;
  EXPECT_EQ(normalized(content, "b  b "), " b  b ");
  content.addsSpace = false;
  EXPECT_EQ(normalized(content, "Ab"), "ab");
}

TEST(SentencepieceModelTest, WrongModelsAreRefused) {
  SentencepieceContent content = smallSentencepieceModel();
  const std::vector<uint8_t> bytes = content.write();
  for (size_t size = 0; size < bytes.size(); size += 7)
    EXPECT_FALSE(SentencepieceModel::read(std::span(bytes).first(size))) << size;
  std::vector<uint8_t> shifted = bytes;
  shifted.insert(shifted.begin(), 0);
  EXPECT_THAT(SentencepieceModel::read(std::span(shifted).subspan(1)).error().message(),
              HasSubstr("multiple of 4"));
  content.version = 1;
  EXPECT_THAT(SentencepieceModel::read(content.write()).error().message(),
              HasSubstr("has the version 1"));
  content = smallSentencepieceModel();
  content.replacements["c"] = std::string(1000, 'c');
  const std::vector<uint8_t> growing = content.write();
  EXPECT_THAT(SentencepieceModel::read(growing)->encode("cccc", {}).error().message(),
              HasSubstr("64 times"));
}

// A trie whose nodes lead to themselves ends after 4,096 bytes.
TEST(SentencepieceModelTest, CirclesEnd) {
  // The root and "a" have their children at 1; "a" is its own child.
  std::vector<uint32_t> nodes(256);
  nodes[0] = 1u << 10;
  nodes[1] = 0x80000007u;
  nodes[1 ^ 'a'] = 'a' | 0x100u | static_cast<uint32_t>('a') << 10;
  const base::DoubleArrayTrie trie(reinterpret_cast<const uint8_t*>(nodes.data()), nodes.size());
  size_t count = 0;
  trie.forEachPrefix(std::string(100'000, 'a'), [&](const base::DoubleArrayTrie::Match& match) {
    EXPECT_EQ(match.value, 7u);
    ++count;
  });
  EXPECT_EQ(count, 4096u);
}

}  // namespace
}  // namespace hearth::ops
