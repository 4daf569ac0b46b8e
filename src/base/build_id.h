// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace hearth::base {

// The build identifier that the linker wrote into the library or program that contains the address
// `code`; empty where there is none. Valid while that is loaded. Thread-safe.
std::span<const uint8_t> buildIdOf(const void* code);

}  // namespace hearth::base
