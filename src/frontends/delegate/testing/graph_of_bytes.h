// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hearth::delegate {

// For tests: interprets bytes as options of a delegate and as the tensors and nodes of a runtime's
// graph, right and wrong ones, and lets a delegate take, prepare and run it. Leaves out only what a
// delegate cannot check: pointers to memory that is too small, and truth values that are neither.
// Aborts when the delegate makes the runtime fail, or fails without a sentence. Returns how many
// nodes were computed.
size_t runGraphOfBytes(std::span<const uint8_t> bytes);

}  // namespace hearth::delegate
