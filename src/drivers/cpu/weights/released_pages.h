// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace hearth::cpu {

// Releases the whole pages in unmodified bytes of a mapped file, such as Node::packedSources; a
// later read brings them back from the page cache. Does nothing for less than 64 KiB. Thread-safe.
void releasePages(std::span<const uint8_t> bytes);

}  // namespace hearth::cpu
