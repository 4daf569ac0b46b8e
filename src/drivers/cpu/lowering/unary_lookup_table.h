// SPDX-License-Identifier: Apache-2.0
// Functions of one 8- or 16-bit number by look-up tables. The kernel of src/ops computes the table
// once, for all values of the type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Adds output 0 = function(input 0) for an operation that maps each element of input 0 by itself
// and whose other arguments are constants of one element; false for other types, and for tensors
// with no more elements than the table.
Result<bool> lowerByTable(PlanBuilder* builder);

// target[i] = table[source[i]]; source and target may be the same memory.
void lookUp(const uint8_t (&table)[256], const uint8_t* source, uint8_t* target, size_t count);

}  // namespace hearth::cpu
