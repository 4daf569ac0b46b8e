// SPDX-License-Identifier: Apache-2.0
#include "tools/media/wav.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tools/media/file.h"

namespace hearth::tools {
namespace {

using ::testing::HasSubstr;

void put(std::vector<uint8_t>& out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
}
void put(std::vector<uint8_t>& out, std::string_view tag) {
  out.insert(out.end(), tag.begin(), tag.end());
}

std::vector<uint8_t> wav(unsigned encoding, unsigned channels, uint32_t rate, unsigned bits) {
  std::vector<uint8_t> out;
  put(out, "RIFF");
  put(out, 0, 4);
  put(out, "WAVELIST");
  put(out, 3, 4);
  put(out, "abc\0");
  out.push_back(0);  // padding to an even length
  put(out, "fmt ");
  put(out, 16, 4);
  put(out, encoding, 2);
  put(out, channels, 2);
  put(out, rate, 4);
  put(out, 0, 4);
  put(out, 0, 2);
  put(out, bits, 2);
  put(out, "data");
  put(out, 4, 4);
  put(out, 0x8000, 2);
  put(out, 0x7FFF, 2);
  return out;
}

std::string errorOf(const std::vector<uint8_t>& bytes) {
  const auto samples = parseWav(bytes);
  return samples ? "" : samples.error().message();
}

TEST(WavTest, ReadsSamplesBehindOtherChunks) {
  const auto samples = parseWav(wav(1, 1, 16000, 16));
  ASSERT_TRUE(samples) << samples.error().toString();
  EXPECT_EQ(*samples, (std::vector<int16_t>{-32768, 32767}));
}

TEST(WavTest, AnExtensibleFormatHasItsEncodingBehindTheFields) {
  // The first two bytes of the format's identifier are the last ones of the chunk.
  std::vector<uint8_t> file = wav(0xFFFE, 1, 16000, 16);
  constexpr std::string_view kFormat = "fmt ";
  const auto format = std::ranges::search(file, kFormat).begin();
  format[4] = 26;
  const std::vector<uint8_t> more = {0, 0, 16, 0, 0, 0, 0, 0, 1, 0};
  file.insert(format + 8 + 16, more.begin(), more.end());
  const auto samples = parseWav(file);
  ASSERT_TRUE(samples) << samples.error().toString();
  EXPECT_EQ(samples->size(), 2u);
}

TEST(WavTest, NamesWhatItCannotRead) {
  EXPECT_THAT(errorOf(wav(1, 1, 44100, 16)), HasSubstr("44100 samples per second"));
  EXPECT_THAT(errorOf(wav(1, 2, 16000, 16)), HasSubstr("2 channels"));
  EXPECT_THAT(errorOf(wav(1, 1, 16000, 8)), HasSubstr("8 bits"));
  EXPECT_THAT(errorOf(wav(3, 1, 16000, 32)), HasSubstr("encoding 3"));
  EXPECT_THAT(errorOf({1, 2, 3}), HasSubstr("does not begin"));
}

TEST(WavTest, RefusesEveryTruncation) {
  const std::vector<uint8_t> file = wav(1, 1, 16000, 16);
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(parseWav(std::span(file).first(size))) << size;
}

TEST(WavTest, ReadsARecording) {
  const char* data = std::getenv("HEARTH_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
  const auto bytes = readFile(std::string(data) + "/data/audio/yes_1000ms.wav");
  ASSERT_TRUE(bytes);
  const auto samples = parseWav(*bytes);
  ASSERT_TRUE(samples);
  EXPECT_EQ(samples->size(), 16000u);
}

}  // namespace
}  // namespace hearth::tools
