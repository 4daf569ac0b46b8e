// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hearth::nnapi {

// For tests: takes bytes for a sequence of calls of the C API, right and wrong ones, on a handful
// of objects of each kind, and makes them. Only what C cannot check is left out: pointers to memory
// that is too small, and objects after they were freed. Aborts when an out-pointer is not null
// after a failure, or a result is no code of NNAPI. Returns how many calls succeeded.
size_t runCallSequence(std::span<const uint8_t> bytes);

}  // namespace hearth::nnapi
