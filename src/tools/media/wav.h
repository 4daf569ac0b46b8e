// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace hearth::tools {

// Samples of a RIFF/WAVE file of 16-bit PCM, one channel, 16 kHz: what speech models take.
// kBadData for a malformed file, kUnsupported (with the value found) for other encodings, channel
// counts, widths and rates.
Result<std::vector<int16_t>> parseWav(std::span<const uint8_t> bytes);

}  // namespace hearth::tools
