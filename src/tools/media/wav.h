// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace hearth::tools {

// Samples per second that speech models take.
inline constexpr uint32_t kSpeechRate = 16000;

// Samples of a RIFF/WAVE file of 16-bit PCM, one channel, `rate` samples per second. kBadData for a
// malformed file, kUnsupported (with the value found) for other encodings, channel counts, widths
// and rates.
Result<std::vector<int16_t>> parseWav(std::span<const uint8_t> bytes, uint32_t rate = kSpeechRate);

}  // namespace hearth::tools
