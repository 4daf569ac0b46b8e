// SPDX-License-Identifier: Apache-2.0
#include "llm/pattern.h"

#include <gmock/gmock.h>

#include "llm/pre_tokenizer.h"
#include "llm/unicode_normal_form.h"

namespace hearth::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// All matches of an expression in a text, one behind the other.
std::vector<std::string> matches(std::string_view expression, std::string_view text) {
  std::vector<std::string> found;
  const auto pattern = Pattern::compile(expression);
  if (!pattern) {
    ADD_FAILURE() << pattern.error().toString();
    return found;
  }
  PatternBudget budget(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto match = pattern->find(text, at, &budget);
    if (!match || !*match || (*match)->end == (*match)->begin) break;
    found.emplace_back(text.substr((*match)->begin, (*match)->end - (*match)->begin));
    at = (*match)->end;
  }
  return found;
}

std::string problemOf(std::string_view expression) {
  const auto pattern = Pattern::compile(expression);
  return pattern ? "" : pattern.error().toString();
}

TEST(PatternTest, Gpt2SplitsWordsNumbersAndSpace) {
  EXPECT_THAT(matches(gpt2Expression(), "I'll go,  42 été\n\n x"),
              ElementsAre("I", "'ll", " go", ",", " ", " 42", " été", "\n\n", " x"));
}

TEST(PatternTest, Llama3SplitsContractionsInAnyCaseAndDigitsByThree) {
  constexpr std::string_view kExpression =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  EXPECT_THAT(matches(kExpression, "It'S 12345 (ok)!\r\n  \n end"),
              ElementsAre("It", "'S", " ", "123", "45", " (", "ok", ")!\r\n", "  \n", " end"));
}

TEST(PatternTest, GroupsRepeatAndGoBack) {
  EXPECT_THAT(matches("(?:ab|a)+b", "abab aab"), ElementsAre("abab", "aab"));
  EXPECT_THAT(matches("a{2}(?=c)", "aab aac"), ElementsAre("aa"));
}

TEST(PatternTest, CharactersHaveNumbers) {
  EXPECT_THAT(matches("\\x{1fA}\\x61|\\u00AF", "\u01FAa\u00AF"), ElementsAre("\u01FAa", "\u00AF"));
  EXPECT_THAT(matches("\\x{10FFFF}|\\x{0000061}", "\U0010FFFFa"), ElementsAre("\U0010FFFF", "a"));
  EXPECT_THAT(problemOf("\\u12"), HasSubstr("number of a character"));
  EXPECT_THAT(problemOf("\\x{1g}"), HasSubstr("number of a character"));
  EXPECT_THAT(problemOf("\\x{`}"), HasSubstr("number of a character"));
  EXPECT_THAT(problemOf("\\x{}"), HasSubstr("number of a character"));
  EXPECT_THAT(problemOf("\\x{110000}"), HasSubstr("above 10FFFF"));
}

TEST(PatternTest, APointIsAnythingButTheEndOfALine) {
  EXPECT_THAT(matches("a.|\n", "ab\na\u00E9"), ElementsAre("ab", "\n", "a\u00E9"));
  EXPECT_THAT(matches("a.", "a\n"), IsEmpty());
}

TEST(PatternTest, PossessiveRepetitionsDoNotGoBack) {
  EXPECT_THAT(matches("a++b|a+", "aaab aaa"), ElementsAre("aaab", "aaa"));
  EXPECT_THAT(matches("a*+ab", "aaab"), IsEmpty());
}

TEST(PatternTest, WhatIsNotKnownIsRefused) {
  EXPECT_THAT(problemOf("(a"), HasSubstr("not closed"));
  EXPECT_THAT(problemOf("a)"), HasSubstr("not open"));
  EXPECT_THAT(problemOf("(?<=a)b"), HasSubstr("not supported"));
  EXPECT_THAT(problemOf("a+?"), HasSubstr("not supported"));
  EXPECT_THAT(problemOf("\\p{Han}"), HasSubstr("not supported"));
  EXPECT_THAT(problemOf("[a-c&&[^b]]"), HasSubstr("not supported"));
  EXPECT_THAT(problemOf("(a?)*"), HasSubstr("may be empty"));
  EXPECT_THAT(problemOf("(?:(?:a{1000}b){1000}c){1000}"), HasSubstr("too long"));
  EXPECT_THAT(problemOf("a{2000}"), HasSubstr("1000"));
  EXPECT_THAT(problemOf(std::string(1000, '(')), HasSubstr("too deeply"));
}

TEST(PatternTest, ASearchThatTakesForEverEnds) {
  const auto pattern = Pattern::compile("(?:a|a)+b");
  ASSERT_TRUE(pattern) << pattern.error().toString();
  const std::string text(60, 'a');
  PatternBudget budget(text.size());
  const auto match = pattern->find(text, 0, &budget);
  ASSERT_FALSE(match);
  EXPECT_THAT(match.error().message(), HasSubstr("takes too long"));
}

std::vector<std::string> wordsOf(const PreTokenizer& step, std::string_view text) {
  const auto words = splitIntoWords({step}, text, true);
  if (!words) return {words.error().toString()};
  return {words->views.begin(), words->views.end()};
}

TEST(PreTokenizerTest, WhatMatchesGoesWhereTheBehaviorSays) {
  PreTokenizer step;
  step.text = "-";
  const auto with = [&](SplitBehavior behavior) {
    step.behavior = behavior;
    return wordsOf(step, "a--b");
  };
  EXPECT_THAT(with(SplitBehavior::kRemoved), ElementsAre("a", "b"));
  EXPECT_THAT(with(SplitBehavior::kIsolated), ElementsAre("a", "-", "-", "b"));
  EXPECT_THAT(with(SplitBehavior::kMergedWithPrevious), ElementsAre("a-", "-", "b"));
  EXPECT_THAT(with(SplitBehavior::kMergedWithNext), ElementsAre("a", "-", "-b"));
  EXPECT_THAT(with(SplitBehavior::kContiguous), ElementsAre("a", "--", "b"));
}

TEST(PreTokenizerTest, DigitsStandAloneOrTogether) {
  PreTokenizer step;
  step.kind = PreTokenizer::Kind::kDigits;
  EXPECT_THAT(wordsOf(step, "a12b"), ElementsAre("a", "12", "b"));
  step.isEachDigit = true;
  EXPECT_THAT(wordsOf(step, "a12b"), ElementsAre("a", "1", "2", "b"));
}

TEST(PreTokenizerTest, MetaspaceStandsBeforeEachWord) {
  PreTokenizer step;
  step.kind = PreTokenizer::Kind::kMetaspace;
  step.text = "_";
  step.isPrepended = true;
  EXPECT_THAT(wordsOf(step, "a bc"), ElementsAre("_a", "_bc"));
  EXPECT_THAT(wordsOf(step, "  a"), ElementsAre("_", "_a"));
}

TEST(UnicodeNormalFormTest, MarksAreComposedInTheirOrder) {
  EXPECT_EQ(composed("e\u0301"), "\u00E9");
  // A dot below comes before a circumflex, whatever order they are typed in.
  EXPECT_EQ(composed("e\u0302\u0323"), "\u1EC7");
  EXPECT_EQ(composed("\u1100\u1161\u11A8"), "\uAC01");
  EXPECT_EQ(composed("\u212B"), "\u00C5");
  // Marks without a character before them.
  EXPECT_EQ(composed("\u0323\u0302e\u0301"), "\u0323\u0302\u00E9");
  // Excluded from composition.
  EXPECT_EQ(composed("\u0915\u093C"), "\u0915\u093C");
  EXPECT_EQ(decomposed("\u1EC7\uAC01"), "e\u0323\u0302\u1100\u1161\u11A8");
}

}  // namespace
}  // namespace hearth::llm
