// SPDX-License-Identifier: Apache-2.0
#include "llm/llm_metadata.h"

#include <gmock/gmock.h>

#include <array>

#include "base/inflate.h"
#include "llm/model_file.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::span<const uint8_t> bytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A field with bytes as its value.
std::string field(int number, const std::string& value) {
  return std::string(1, static_cast<char>(number << 3 | 2)) +
         std::string(1, static_cast<char>(value.size())) + value;
}

std::string number(int field, char value) {
  return {static_cast<char>(field << 3), value};
}

std::string problemOf(const std::string& message) {
  const auto metadata = readLlmMetadata(bytesOf(message));
  return metadata ? "" : metadata.error().toString();
}

TEST(LlmMetadataTest, FieldsAreReadAndOthersSkipped) {
  const std::string message =
      field(1, field(2, "<s>")) + field(2, field(1, field(1, "\x05\x80\x01"))) +
      field(2, field(1, number(1, 7))) + field(3, field(1, field(1, "u") + field(2, "/u"))) +
      field(4, number(1, 1) + number(2, 40) + std::string("\x25\x00\x00\x00\x3f", 5)) +
      std::string("\x28\x80\x10", 3) + field(7, "{{ x }}") + field(9, "\x03") + field(14, "1.0") +
      number(11, 1) + std::string("\x79\x01\x02\x03\x04\x05\x06\x07\x08", 9);
  const auto metadata = readLlmMetadata(bytesOf(message));
  ASSERT_TRUE(metadata) << metadata.error().toString();
  EXPECT_EQ(metadata->startToken->text, "<s>");
  ASSERT_EQ(metadata->stopTokens.size(), 2);
  EXPECT_THAT(metadata->stopTokens[0].ids, ElementsAre(5, 128));
  EXPECT_THAT(metadata->stopTokens[1].ids, ElementsAre(7));
  EXPECT_EQ(metadata->user->prefix, "u");
  EXPECT_EQ(metadata->user->suffix, "/u");
  EXPECT_FALSE(metadata->model);
  EXPECT_EQ(metadata->sampler->type, SamplerParameters::Type::kTopK);
  EXPECT_EQ(metadata->sampler->k, 40);
  EXPECT_EQ(metadata->sampler->temperature, 0.5F);
  EXPECT_EQ(metadata->maxTokens, 2048);
  EXPECT_EQ(metadata->chatTemplate, "{{ x }}");
  EXPECT_THAT(metadata->suppressedTokens, ElementsAre(3));
}

TEST(LlmMetadataTest, DamagedMessagesAreRefused) {
  EXPECT_EQ(problemOf(""), "");
  EXPECT_THAT(problemOf("\x0a"), HasSubstr("ends within a number"));
  EXPECT_THAT(problemOf("\x0a\x05xx"), HasSubstr("has 5 bytes, 2 are left"));
  EXPECT_THAT(problemOf(std::string(11, '\xff')), HasSubstr("more than 64 bits"));
  EXPECT_THAT(problemOf(std::string("\x00\x00", 2)), HasSubstr("number 0"));
  EXPECT_THAT(problemOf("\x0b"), HasSubstr("wire type 3"));
  EXPECT_THAT(problemOf("\x0d\x01\x02\x03"), HasSubstr("ends within a number"));
  EXPECT_THAT(problemOf(field(7, "\xff")), HasSubstr("no UTF-8"));
  EXPECT_THAT(problemOf(number(7, 1)), HasSubstr("no text"));
  EXPECT_THAT(problemOf(field(2, field(1, field(1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")))),
              HasSubstr("-1 is no token"));
  EXPECT_THAT(problemOf(field(2, field(1, field(1, "\xff")))), HasSubstr("ends within a number"));
  EXPECT_EQ(problemOf("\x28\xff\xff\xff\xff\x07"), "");
  EXPECT_THAT(problemOf("\x28\x80\x80\x80\x80\x08"),
              HasSubstr("The context has 2147483648 tokens."));
}

// "hello hello hello hello" as zlib packs it.
constexpr std::array<uint8_t, 16> kPacked = {0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57,
                                             0xc8, 0x40, 0x27, 0x01, 0x68, 0x03, 0x08, 0xb1};

TEST(ZlibStreamTest, StreamsAreUnpackedAndChecked) {
  const auto text = base::unpackZlib(kPacked, 23);
  ASSERT_TRUE(text) << text.error().toString();
  EXPECT_EQ(*text, "hello hello hello hello");
  for (const size_t size : {0, 22, 24, 1 << 30})
    EXPECT_FALSE(base::unpackZlib(kPacked, size)) << size;
  EXPECT_FALSE(base::unpackZlib(std::span(kPacked).first(10), 23));
  for (size_t i = 2; i < kPacked.size(); ++i) {
    auto damaged = kPacked;
    damaged[i] ^= 1;
    EXPECT_FALSE(base::unpackZlib(damaged, 23)) << i;
  }
}

TEST(ZlibStreamTest, ASectionBeginsWithItsSize) {
  std::vector<uint8_t> section = {23, 0, 0, 0, 0, 0, 0, 0};
  section.insert(section.end(), kPacked.begin(), kPacked.end());
  const auto text = unpackTokenizer(section);
  ASSERT_TRUE(text) << text.error().toString();
  EXPECT_EQ(*text, "hello hello hello hello");
  section[7] = 1;
  EXPECT_THAT(unpackTokenizer(section).error().toString(), HasSubstr("at most"));
  EXPECT_FALSE(unpackTokenizer(std::span(section).first(7)));
}

TEST(Utf8Test, CharactersThatAreNoneAreFoundAndReplaced) {
  EXPECT_EQ(findInvalidUtf8("a\u00E9\u20AC\U0001F600"), std::string_view::npos);
  for (const std::string_view bytes : {"\x80", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                                       "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5", "\xE2\x82"})
    EXPECT_EQ(findInvalidUtf8(bytes), 0) << replaceInvalidUtf8(bytes);
  EXPECT_EQ(replaceInvalidUtf8("a\xE2\x82z\xFF"), "a\uFFFDz\uFFFD");
  EXPECT_EQ(unfinishedBytes("a\xE2\x82"), 2);
  EXPECT_EQ(unfinishedBytes("a\xE2\x82\xAC"), 0);
  EXPECT_EQ(unfinishedBytes("\xFF"), 0);
}

}  // namespace
}  // namespace hearth::llm
