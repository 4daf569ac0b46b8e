// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace hearth::llm {

// Unpacks a zlib stream (RFC 1950) that holds exactly `size` bytes, and checks its checksum. The
// caller has checked that `size` is no larger than it can afford. Error: kBadData.
Result<std::string> unpackZlib(std::span<const uint8_t> stream, size_t size);

}  // namespace hearth::llm
