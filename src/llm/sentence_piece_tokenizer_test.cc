// SPDX-License-Identifier: Apache-2.0
#include "llm/sentence_piece_tokenizer.h"

#include <gmock/gmock.h>

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "llm/testing/piece_model_writer.h"
#include "llm/text_stream.h"
#include "llm/tokenizer.h"

namespace hearth::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = SentencePieceModel::Kind;

std::span<const uint8_t> bytesOf(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Tokenizer read(const PieceModelWriter& writer) {
  return Tokenizer::fromSentencePiece(bytesOf(writer.write())).value();
}

std::string problemOf(const std::string& message) {
  const auto tokenizer = Tokenizer::fromSentencePiece(bytesOf(message));
  return tokenizer ? "" : tokenizer.error().toString();
}

std::vector<int32_t> encode(const Tokenizer& tokenizer, std::string_view text,
                            SpecialTokens special = SpecialTokens::kAreText, bool isFirst = true) {
  return tokenizer.encode(text, special, isFirst).value();
}

// <unk>, <s>, a to e, and marks as models have them.
PieceModelWriter smallModel(Kind kind) {
  PieceModelWriter writer(kind);
  writer.add("<unk>", 0, PieceType::kUnknown).add("<s>", 0, PieceType::kControl);
  for (const char* const text : {"a", "b", "c", "d", "e"}) writer.add(text, -10);
  return writer
      .add("<turn_end>", 0, PieceType::kUserDefined)  // 7
      .add("<b>", 0, PieceType::kUserDefined)         // 8
      .add("\u2581", -11)                             // 9
      .add("<", -12)                                  // 10
      .add(">", -12);                                 // 11
}

TEST(SentencePieceTokenizerTest, TheBestSumOfScoresWins) {
  const Tokenizer tokenizer = read(smallModel(Kind::kUnigram)
                                       .add("abc", -13)  // 12
                                       .add("ab", -4)    // 13
                                       .add("bcd", -5)   // 14
                                       .setNormalizer(false, false));
  EXPECT_THAT(encode(tokenizer, "abc"), ElementsAre(12));      // -13 and not -4 - 10
  EXPECT_THAT(encode(tokenizer, "abcd"), ElementsAre(2, 14));  // -10 - 5 and not -13 - 10
  EXPECT_THAT(encode(tokenizer, ""), IsEmpty());
  EXPECT_EQ(tokenizer.kind(), "SentencePiece, unigram");
}

TEST(SentencePieceTokenizerTest, ThePairWithTheHighestScoreIsMergedFirst) {
  const Tokenizer tokenizer = read(smallModel(Kind::kBytePairs)
                                       .add("bc", -1)   // 12
                                       .add("ab", -2)   // 13
                                       .add("abc", -3)  // 14
                                       .setNormalizer(false, false));
  EXPECT_THAT(encode(tokenizer, "abc"), ElementsAre(14));
  EXPECT_THAT(encode(tokenizer, "abd"), ElementsAre(13, 5));
  EXPECT_THAT(encode(tokenizer, "aab"), ElementsAre(2, 13));
  EXPECT_EQ(tokenizer.kind(), "SentencePiece, byte pairs");
}

TEST(SentencePieceTokenizerTest, APieceThatIsOnlyMergedFurtherIsTakenApart) {
  const Tokenizer tokenizer = read(smallModel(Kind::kBytePairs)
                                       .add("ab", -1, PieceType::kUnused)  // 12
                                       .add("abc", -2)                     // 13
                                       .setNormalizer(false, false));
  EXPECT_THAT(encode(tokenizer, "abc"), ElementsAre(13));
  EXPECT_THAT(encode(tokenizer, "abd"), ElementsAre(2, 3, 5));
}

TEST(SentencePieceTokenizerTest, SpacesAreThoseThatTheModelWants) {
  const Tokenizer plain = read(smallModel(Kind::kUnigram).setNormalizer(false, false));
  EXPECT_THAT(encode(plain, " a  b "), ElementsAre(9, 2, 9, 9, 3, 9));
  const Tokenizer prefixed = read(smallModel(Kind::kUnigram).setNormalizer(true, true));
  EXPECT_THAT(encode(prefixed, " a  b "), ElementsAre(9, 2, 9, 3));
  EXPECT_THAT(encode(prefixed, "a", SpecialTokens::kAreText, false), ElementsAre(2));
  EXPECT_THAT(encode(prefixed, "   "), IsEmpty());
  EXPECT_EQ(prefixed.decode(std::vector<int32_t>{9, 2, 9, 3}), "a b");
  EXPECT_EQ(plain.decode(std::vector<int32_t>{9, 2, 9, 3}), " a b");
  const Tokenizer suffixed =
      read(smallModel(Kind::kUnigram).setNormalizer(true, true).setTrainerField(24, 1));
  EXPECT_THAT(encode(suffixed, "a b"), ElementsAre(2, 9, 3, 9));
}

TEST(SentencePieceTokenizerTest, UnknownCharactersAreOneTokenOrBytes) {
  const Tokenizer plain = read(smallModel(Kind::kUnigram).setNormalizer(false, false));
  EXPECT_THAT(encode(plain, "a\u00E9\u4E2Db"), ElementsAre(2, 0, 3));
  EXPECT_EQ(plain.decode(std::vector<int32_t>{2, 0, 3, 99}), "a \u2047 b\uFFFD");
  for (const Kind kind : {Kind::kUnigram, Kind::kBytePairs}) {
    const Tokenizer bytes = read(smallModel(kind).addBytes().setNormalizer(false, false));
    EXPECT_THAT(encode(bytes, "a\u00E9"), ElementsAre(2, 12 + 0xC3, 12 + 0xA9));
    EXPECT_EQ(bytes.decode(encode(bytes, "a\u00E9\U0001F600")), "a\u00E9\U0001F600");
  }
}

TEST(SentencePieceTokenizerTest, MarksInATextAreTextUnlessAsked) {
  for (const Kind kind : {Kind::kUnigram, Kind::kBytePairs}) {
    const Tokenizer tokenizer = read(smallModel(kind).setNormalizer(false, false));
    EXPECT_THAT(encode(tokenizer, "a<turn_end><s>", SpecialTokens::kAreParsed),
                ElementsAre(2, 7, 1));
    EXPECT_THAT(encode(tokenizer, "<s><turn_end>b"), ElementsAre(10, 0, 11, 10, 0, 6, 0, 5, 11, 3));
    // A piece that a user may well write.
    EXPECT_THAT(encode(tokenizer, "a<b>"), ElementsAre(2, 8));
    EXPECT_TRUE(tokenizer.isSpecial(7));
    EXPECT_TRUE(tokenizer.isSpecial(1));
    EXPECT_FALSE(tokenizer.isSpecial(8));
    EXPECT_FALSE(tokenizer.isSpecial(-1));
    EXPECT_EQ(tokenizer.specialToken("<s>"), 1);
    EXPECT_EQ(tokenizer.specialToken("<b>"), std::nullopt);
    EXPECT_EQ(tokenizer.findSpecial("a<turn_end>", 0), std::pair(size_t{1}, size_t{10}));
    EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{1, 2, 7}), "a");
    EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{1, 2, 7}, true), "<s>a<turn_end>");
  }
}

// The score of unknown text follows from those of normal pieces.
TEST(SentencePieceTokenizerTest, AModelMayHaveNoNormalPieces) {
  const Tokenizer tokenizer = read(PieceModelWriter(Kind::kUnigram)
                                       .add("<unk>", 0, PieceType::kUnknown)
                                       .add("a", 0, PieceType::kUserDefined)
                                       .add("b", 0, PieceType::kUserDefined)
                                       .setNormalizer(false, false));
  EXPECT_THAT(encode(tokenizer, "abc"), ElementsAre(1, 2, 0));
}

TEST(SentencePieceTokenizerTest, ATextBehindItsStartIsTheFirst) {
  const Tokenizer tokenizer = read(smallModel(Kind::kUnigram).setNormalizer(true, false));
  EXPECT_THAT(encode(tokenizer, "<s>a<s>b", SpecialTokens::kAreParsed), ElementsAre(1, 9, 2, 1, 3));
}

TEST(SentencePieceTokenizerTest, RulesReplaceTheLongestText) {
  // A double array in which "a" becomes "b", and "ab" nothing. The children of a unit lie at its
  // own place, its offset and their byte, combined by exclusive or; a value in place of a byte 0.
  std::vector<uint32_t> units(512);
  const auto offset = [](uint32_t at) {
    return at << 10;
  };
  units[0] = offset(256);
  units[256 ^ 'a'] = offset(64) | 0x100 | 'a';  // children at 353 ^ 64 = 289
  units[289] = 0 | 0x80000000;                  // the text at 0
  units[289 ^ 'b'] = offset(4) | 0x100 | 'b';   // at 323, children at 327
  units[327] = 2 | 0x80000000;
  std::string rules(4, '\0');
  rules[1] = static_cast<char>(units.size() * 4 >> 8);
  for (const uint32_t unit : units)
    for (int shift = 0; shift < 32; shift += 8) rules.push_back(static_cast<char>(unit >> shift));
  rules += std::string("b\0\0", 3);
  const Tokenizer tokenizer =
      read(smallModel(Kind::kUnigram).setNormalizer(false, false).setNormalizerField(2, rules));
  EXPECT_THAT(encode(tokenizer, "acab"), ElementsAre(3, 4));
}

TEST(SentencePieceTokenizerTest, ALongTextIsEncoded) {
  for (const Kind kind : {Kind::kUnigram, Kind::kBytePairs}) {
    for (const bool hasInnerSpaces : {false, true}) {
      PieceModelWriter writer = smallModel(kind);
      writer.add("ab", -1).setNormalizer(false, false);
      if (hasInnerSpaces) writer.add("a\u2581b", -20);
      const Tokenizer tokenizer = read(writer);
      std::string text;
      std::vector<int32_t> expected;
      for (int i = 0; i < 200'000; ++i) {
        text += "ab ";
        expected.insert(expected.end(), {12, 9});
      }
      EXPECT_EQ(encode(tokenizer, text), expected);
    }
  }
}

TEST(SentencePieceTokenizerTest, AnAnswerBeginsWithoutASpace) {
  const Tokenizer tokenizer =
      read(smallModel(Kind::kUnigram).addBytes().setNormalizer(true, false));
  TextStream stream(tokenizer, {"cc"});
  EXPECT_EQ(stream.add(9), "");
  EXPECT_EQ(stream.add(9), " ");
  EXPECT_EQ(stream.add(12 + 0xC3), "");
  EXPECT_EQ(stream.add(12 + 0xA9), "\u00E9");
  EXPECT_EQ(stream.add(4), "");
  EXPECT_EQ(stream.add(2), "ca");
}

TEST(SentencePieceTokenizerTest, WrongModelsAreRefused) {
  const PieceModelWriter small = smallModel(Kind::kUnigram);
  EXPECT_THAT(problemOf(""), HasSubstr("0 of the tokenizer's 0 pieces stand for unknown text"));
  EXPECT_THAT(problemOf("\x0A\x7F"), HasSubstr("while reading the tokenizer"));
  EXPECT_THAT(problemOf(PieceModelWriter(small).add("a", 0).write()),
              HasSubstr("The pieces 2 and 12 have the same text"));
  EXPECT_THAT(problemOf(PieceModelWriter(small).add("", 0).write()),
              HasSubstr("Piece 12 has 0 bytes"));
  EXPECT_THAT(problemOf(PieceModelWriter(small).add(std::string(513, 'x'), 0).write()),
              HasSubstr("Piece 12 has 513 bytes; pieces have 1 to 512"));
  EXPECT_THAT(
      problemOf(PieceModelWriter(small).add("x", std::numeric_limits<float>::quiet_NaN()).write()),
      HasSubstr("The score of piece 12 is no number"));
  EXPECT_THAT(problemOf(PieceModelWriter(small).add("x", 0, PieceType::kUnknown).write()),
              HasSubstr("2 of the tokenizer's 13 pieces"));
  EXPECT_THAT(problemOf(PieceModelWriter(small).add("x", 0, static_cast<PieceType>(9)).write()),
              HasSubstr("Piece 12 has the type 9"));
  EXPECT_THAT(problemOf(PieceModelWriter(small).add("x", 0, PieceType::kByte).write()),
              HasSubstr("Piece 12 is no byte"));
  EXPECT_THAT(problemOf(PieceModelWriter(small).setTrainerField(35, 1).write()),
              HasSubstr("byte 0 has no piece"));
  EXPECT_THAT(problemOf(PieceModelWriter(static_cast<Kind>(3)).write()),
              HasSubstr("model is of type 3"));
  EXPECT_THAT(problemOf(PieceModelWriter(small).setNormalizerField(2, "\xFF\xFF").write()),
              HasSubstr("rules have 2 bytes"));
  EXPECT_THAT(
      problemOf(
          PieceModelWriter(small).setNormalizerField(2, std::string("\x08\0\0\0abcd", 8)).write()),
      HasSubstr("rules have 4 bytes, and 8 of them units"));
}

TEST(SentencePieceTokenizerTest, ATextThatRulesMakeMuchLongerIsRefused) {
  std::vector<uint32_t> units(512);
  units[0] = 256 << 10;
  units[256 ^ 'a'] = 64 << 10 | 0x100 | 'a';
  units[289] = 0x80000000;
  std::string rules(4, '\0');
  rules[1] = static_cast<char>(units.size() * 4 >> 8);
  for (const uint32_t unit : units)
    for (int shift = 0; shift < 32; shift += 8) rules.push_back(static_cast<char>(unit >> shift));
  rules += std::string(100, 'b');
  const Tokenizer tokenizer =
      read(smallModel(Kind::kUnigram).setNormalizer(false, false).setNormalizerField(2, rules));
  EXPECT_EQ(encode(tokenizer, "a").size(), 100);
  const auto tokens = tokenizer.encode(std::string(100, 'a'), SpecialTokens::kAreText);
  ASSERT_FALSE(tokens);
  EXPECT_THAT(tokens.error().toString(), HasSubstr("more than 16 times"));
}

TEST(SentencePieceTableTest, DamageGivesOtherTokensAndNothingWorse) {
  const std::string message =
      smallModel(Kind::kBytePairs).add("ab", -1).addBytes().setNormalizer(true, true).write();
  const auto model = SentencePieceModel::read(bytesOf(message));
  ASSERT_TRUE(model);
  const std::vector<uint8_t> whole = SentencePieceTable::make(*model).value();
  size_t opened = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      const auto bytes = std::make_shared<std::vector<uint8_t>>(whole);
      (*bytes)[at] ^= static_cast<uint8_t>(flip);
      auto table = SentencePieceTable::open(*bytes, bytes);
      if (!table) continue;
      ++opened;
      const Tokenizer tokenizer(std::make_shared<SentencePieceTokenizer>(std::move(*table)));
      const auto tokens = tokenizer.encode("ab <turn_end> \u00E9", SpecialTokens::kAreParsed);
      if (tokens) static_cast<void>(tokenizer.decode(*tokens));
    }
  }
  EXPECT_GT(opened, 0);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(SentencePieceTable::open(std::span(whole).first(size), nullptr)) << size;
}

}  // namespace
}  // namespace hearth::llm
