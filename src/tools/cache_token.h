// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "hearth/hearth.h"
#include "tools/failure.h"

namespace hearth::tools {

using CacheToken = std::array<uint8_t, HEARTH_CACHE_TOKEN_BYTES>;

// NNAPI's cache token from hexadecimal digits; zeros for an empty text.
Outcome<CacheToken> parseCacheToken(const std::string& text);

}  // namespace hearth::tools
