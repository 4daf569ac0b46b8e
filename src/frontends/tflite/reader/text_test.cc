// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/reader/text.h"

#include <gtest/gtest.h>

#include <string>

namespace hearth::tflite {
namespace {

TEST(CleanTextTest, ControlCharactersAreFoundWhereverTheyStand) {
  for (size_t size = 1; size < 20; ++size)
    for (size_t place = 0; place < size; ++place)
      for (int byte = 0; byte < 0x100; ++byte) {
        std::string text(size, place % 2 == 0 ? '~' : ' ');
        text[place] = static_cast<char>(byte);
        std::string expected = text;
        if (byte < 0x20 || byte > 0x7E) expected[place] = '?';
        EXPECT_EQ(cleanText(text), expected);
      }
}

TEST(CleanTextTest, CharactersOfUnicodeStayAndTheRestIsCut) {
  EXPECT_EQ(cleanText(""), "");
  EXPECT_EQ(cleanText({}), "");
  EXPECT_EQ(cleanText("größer\n日本 🎉"), "größer?日本 🎉");
  EXPECT_EQ(cleanText(std::string("\xC0\x80\xED\xA0\x80")), "?????");
  EXPECT_EQ(cleanText(std::string(2000, 'a')), std::string(1024, 'a'));
  EXPECT_EQ(cleanText(std::string(1023, 'a') + "é"), std::string(1023, 'a'));
}

}  // namespace
}  // namespace hearth::tflite
