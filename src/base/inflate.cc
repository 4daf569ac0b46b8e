// SPDX-License-Identifier: Apache-2.0
#include "base/inflate.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <string_view>

#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_ONLY_PNG
#define STBI_SUPPORT_ZLIB
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace hearth::base {
namespace {

constexpr size_t kHeaderBytes = 2;
constexpr size_t kChecksumBytes = 4;
// Deflate makes at most 1032 bytes of one.
constexpr size_t kMaxRatio = 1032;

uint32_t adler32(std::string_view text) {
  // The largest number of bytes after which the sums still fit into 32 bits.
  constexpr size_t kRun = 5552;
  constexpr uint32_t kModulus = 65521;
  uint32_t low = 1;
  uint32_t high = 0;
  while (!text.empty()) {
    for (const char c : text.substr(0, kRun)) {
      low += static_cast<uint8_t>(c);
      high += low;
    }
    low %= kModulus;
    high %= kModulus;
    text.remove_prefix(std::min(kRun, text.size()));
  }
  return high << 16 | low;
}

// The remainders of single bytes, by the polynomial 0x04c11db7 with its bits reversed.
constexpr std::array<uint32_t, 256> makeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < CHAR_BIT; ++bit)
      rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0xedb88320 : 0);
    table[byte] = rest;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kCrcTable = makeCrcTable();

// Whether so many bytes may hold `size` bytes, all within the numbers of the decoder.
bool mayHold(std::span<const uint8_t> deflated, size_t size) {
  return deflated.size() <= INT_MAX && size <= INT_MAX && size / kMaxRatio <= deflated.size();
}

}  // namespace

uint32_t crc32(std::string_view text) {
  uint32_t rest = UINT32_MAX;
  for (const char c : text)
    rest = (rest >> CHAR_BIT) ^ kCrcTable[(rest ^ static_cast<uint8_t>(c)) & 255];
  return ~rest;
}

Result<std::string> unpackDeflated(std::span<const uint8_t> deflated, size_t size, uint32_t crc) {
  if (!mayHold(deflated, size))
    return fail(ErrorCode::kBadData, "{} deflated bytes cannot hold {} bytes.", deflated.size(),
                size);
  std::string text(size, '\0');
  const int made = stbi_zlib_decode_noheader_buffer(text.data(), static_cast<int>(size),
                                                    reinterpret_cast<const char*>(deflated.data()),
                                                    static_cast<int>(deflated.size()));
  if (made < 0 || static_cast<size_t>(made) != size)
    return fail(ErrorCode::kBadData, "The deflated bytes are damaged, or do not hold {} bytes.",
                size);
  if (crc32(text) != crc)
    return fail(ErrorCode::kBadData, "The checksum of the deflated bytes is wrong.");
  return text;
}

Result<std::string> unpackZlib(std::span<const uint8_t> stream, size_t size) {
  if (stream.size() < kHeaderBytes + kChecksumBytes || !mayHold(stream, size))
    return fail(ErrorCode::kBadData, "{} bytes of a zlib stream cannot hold {} bytes.",
                stream.size(), size);
  std::string text(size, '\0');
  const int made = stbi_zlib_decode_buffer(text.data(), static_cast<int>(size),
                                           reinterpret_cast<const char*>(stream.data()),
                                           static_cast<int>(stream.size()));
  if (made < 0 || static_cast<size_t>(made) != size)
    return fail(ErrorCode::kBadData, "A zlib stream is damaged, or does not hold {} bytes.", size);
  // The decoder does not say where the stream ends, and bytes that fill up the section may follow:
  // the checksum is looked for from the end. A damaged stream is found but for one of 2^32 / size.
  const uint32_t sum = adler32(text);
  const std::array<uint8_t, kChecksumBytes> wanted = {
      static_cast<uint8_t>(sum >> 24), static_cast<uint8_t>(sum >> 16),
      static_cast<uint8_t>(sum >> 8), static_cast<uint8_t>(sum)};
  if (std::ranges::find_end(stream, wanted).empty())
    return fail(ErrorCode::kBadData, "The checksum of a zlib stream is wrong.");
  return text;
}

}  // namespace hearth::base
