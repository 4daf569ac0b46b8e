// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hearth::base {

// Unpacks a zlib stream (RFC 1950) that holds exactly `size` bytes, and checks its checksum. The
// caller has checked that `size` is no larger than it can afford. Error: kBadData.
Result<std::string> unpackZlib(std::span<const uint8_t> stream, size_t size);

// The same for deflated bytes alone (RFC 1951), as in a ZIP archive, which has the CRC-32 of what
// they hold.
Result<std::string> unpackDeflated(std::span<const uint8_t> deflated, size_t size, uint32_t crc);

uint32_t crc32(std::string_view text);

}  // namespace hearth::base
