// SPDX-License-Identifier: Apache-2.0
#include "tools/media/wav.h"

#include <optional>
#include <string_view>

namespace hearth::tools {
namespace {

constexpr unsigned kPcm = 1;
constexpr unsigned kExtensible = 0xFFFE;

unsigned little16(std::span<const uint8_t> bytes, size_t at) {
  return bytes[at] | static_cast<unsigned>(bytes[at + 1]) << 8;
}
uint32_t little32(std::span<const uint8_t> bytes, size_t at) {
  return little16(bytes, at) | static_cast<uint32_t>(little16(bytes, at + 2)) << 16;
}
bool hasTag(std::span<const uint8_t> bytes, size_t at, std::string_view tag) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + at, 4) == tag;
}

Status checkFormat(std::span<const uint8_t> chunk, uint32_t wantedRate) {
  if (chunk.size() < 16)
    return fail(ErrorCode::kBadData, "The WAV format chunk has {} bytes; it needs 16.",
                chunk.size());
  unsigned encoding = little16(chunk, 0);
  if (encoding == kExtensible && chunk.size() >= 26) encoding = little16(chunk, 24);
  const unsigned channels = little16(chunk, 2);
  const uint32_t rate = little32(chunk, 4);
  const unsigned bits = little16(chunk, 14);
  if (encoding != kPcm || bits != 16)
    return fail(ErrorCode::kUnsupported,
                "The WAV file has encoding {} with {} bits; 16-bit PCM is needed.", encoding, bits);
  if (channels != 1)
    return fail(ErrorCode::kUnsupported, "The WAV file has {} channels; one is needed.", channels);
  if (rate != wantedRate)
    return fail(ErrorCode::kUnsupported, "The WAV file has {} samples per second; {} are needed.",
                rate, wantedRate);
  return {};
}

}  // namespace

Result<std::vector<int16_t>> parseWav(std::span<const uint8_t> bytes, uint32_t rate) {
  if (bytes.size() < 12 || !hasTag(bytes, 0, "RIFF") || !hasTag(bytes, 8, "WAVE"))
    return fail(ErrorCode::kBadData, "The file does not begin as a WAV file does.");
  bool hasFormat = false;
  size_t position = 12;
  while (bytes.size() - position >= 8) {
    const size_t start = position + 8;
    const size_t length = little32(bytes, position + 4);
    if (length > bytes.size() - start)
      return fail(ErrorCode::kBadData, "A WAV chunk of {} bytes begins {} bytes before the end.",
                  length, bytes.size() - start);
    const auto chunk = bytes.subspan(start, length);
    if (hasTag(bytes, position, "fmt ")) {
      HEARTH_TRY(checkFormat(chunk, rate));
      hasFormat = true;
    } else if (hasTag(bytes, position, "data")) {
      if (!hasFormat) return fail(ErrorCode::kBadData, "The WAV data comes before its format.");
      std::vector<int16_t> samples(length / 2);
      for (size_t i = 0; i < samples.size(); ++i)
        samples[i] = static_cast<int16_t>(little16(chunk, i * 2));
      return samples;
    }
    // Chunks are padded to an even length; the last one may lack its padding.
    position = start + length;
    if (length % 2 == 1 && position < bytes.size()) ++position;
  }
  return fail(ErrorCode::kBadData, "The WAV file has no data chunk.");
}

}  // namespace hearth::tools
