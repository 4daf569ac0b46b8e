// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace hearth::cpu {

// Lets go of the whole pages of clean bytes of a file, as Node::packedSources are; they come back
// from the page cache if somebody reads them after all. Does nothing for few bytes. Thread-safe.
void releasePages(std::span<const uint8_t> bytes);

}  // namespace hearth::cpu
