// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hearth::nnapi {

// Whether a type is one of an extension: its upper half is a prefix.
inline bool isExtensionType(int32_t type) {
  return (type >> 16) != 0;
}

// The type of a code of the extension, with the prefix that the name has for the life of the
// process. Names get prefixes in the order of first use, hearth.tflite always has its own. kBadData
// when all prefixes are taken or the name is empty. Thread-safe.
Result<int32_t> extensionType(std::string_view name, uint16_t code);

// The name as a C string that stays valid for the life of the process. Errors as extensionType().
Result<const char*> lastingExtensionName(std::string_view name);

// The name behind a type's prefix, nothing for one that was not handed out. Thread-safe.
std::optional<std::string> extensionName(int32_t type);

}  // namespace hearth::nnapi
