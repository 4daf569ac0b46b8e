// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hearth::nnapi {

// For tests: interprets bytes as a sequence of calls of the C API, right and wrong ones, on a
// handful of objects of each kind, and makes the calls. Leaves out only what C cannot check:
// pointers to memory that is too small, and freed objects. Aborts when an out-pointer is not null
// after a failure, or a result is no code of NNAPI. Returns the number of calls that succeeded.
size_t runCallSequence(std::span<const uint8_t> bytes);

}  // namespace hearth::nnapi
