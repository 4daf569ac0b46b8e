// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hal/device.h"

namespace hearth::nnapi {

// Whether a type belongs to an extension, that is, has a prefix in its upper half.
inline bool isExtensionType(int32_t type) {
  return (type >> 16) != 0;
}

// The type for a code of the extension. The prefix of a name is fixed for the life of the process:
// names get prefixes in the order of first use, hearth.tflite always has 1. kBadData when all
// prefixes are taken or the name is empty. Thread-safe.
Result<int32_t> extensionType(std::string_view name, uint16_t code);

// The name as a C string that stays valid for the life of the process. Fails like extensionType().
// Thread-safe.
Result<const char*> lastingExtensionName(std::string_view name);

// What the devices say of an operand type of a driver's extension. kBadData for a type that none of
// them knows, and for one of an extension that two of them describe differently. Thread-safe.
Result<hal::ExtensionOperandType> driverOperandType(int32_t type);

// The name behind a type's prefix; nullopt for a prefix that no name has. Thread-safe.
std::optional<std::string> extensionName(int32_t type);

}  // namespace hearth::nnapi
