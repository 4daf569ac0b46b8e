// SPDX-License-Identifier: Apache-2.0
// Rows of 8-bit numbers as distances from the greatest number, on which alone soft-max and its
// logarithm depend.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::cpu {

// distances[i] = the greatest number of the row - source[i]. Exclusive-or with `flip` makes the
// numbers compare as unsigned ones. `source` and `distances` may be the same memory.
void distancesFromGreatest(const uint8_t* source, uint8_t* distances, size_t size, uint8_t flip);

// The sum of powers[distances[i]]; `powers` has 256 entries.
double sumOfPowers(const float* powers, const uint8_t* distances, size_t size);

}  // namespace hearth::cpu
