// SPDX-License-Identifier: Apache-2.0
// Reads and writes whole files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth::tools {

// No input file may be larger than this.
inline constexpr uint64_t kMaxInputFileBytes = uint64_t{4} << 30;

// Reads a whole regular file. Errors: kNotFound, kIo; kBadData when it is no regular file or has
// more than `limit` bytes. Never blocks on a pipe.
Result<std::vector<uint8_t>> readFile(const std::string& path, uint64_t limit = kMaxInputFileBytes);

// Writes a file so that it appears whole or not at all: under a temporary name in the same folder,
// then renamed. Error: kIo.
Status writeFile(const std::string& path, std::span<const uint8_t> bytes);

// Lower-case extension without the dot, "" when there is none.
std::string extensionOf(const std::string& path);

}  // namespace hearth::tools
