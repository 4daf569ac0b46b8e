// SPDX-License-Identifier: Apache-2.0
// Rows of 8-bit numbers by the distance of each from the greatest, which is all that soft-max and
// its logarithm depend on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::cpu {

// distances[i] = the greatest of the row - source[i], of numbers whose order is that of unsigned
// ones after `flip` changed their bits. They may be the same memory.
void distancesFromGreatest(const uint8_t* source, uint8_t* distances, size_t size, uint8_t flip);

// The sum of powers[distances[i]], a table of 256.
double sumOfPowers(const float* powers, const uint8_t* distances, size_t size);

}  // namespace hearth::cpu
