// SPDX-License-Identifier: Apache-2.0
#include "llm/zlib_stream.h"

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

namespace hearth::llm {
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

}  // namespace

Result<std::string> unpackZlib(std::span<const uint8_t> stream, size_t size) {
  if (stream.size() < kHeaderBytes + kChecksumBytes || stream.size() > INT_MAX || size > INT_MAX ||
      size / kMaxRatio > stream.size())
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

}  // namespace hearth::llm
