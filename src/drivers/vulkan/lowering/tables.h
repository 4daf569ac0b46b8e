// SPDX-License-Identifier: Apache-2.0
// Functions of 8-bit numbers, and functions that give them, as tables that the reference kernels
// make: exact for whatever the function is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "drivers/vulkan/lowering/lowering.h"

namespace hearth::vulkan {

// Adds an operation whose inputs and output have elements of a byte: one input, or two that are
// broadcast. Error: kUnsupported where the device cannot store bytes.
Status addTable(LoweringContext& context, bool isOfTwo);

// Adds what replaces each of `count` bytes by that of `results` at its place. Error as addTable().
Status addByteMap(LoweringContext& context, TensorId from, TensorId to, uint64_t count,
                  const std::array<uint8_t, 256>& results);

// The results of the operation's reference kernel for all bytes, as elements of its output.
Result<std::vector<uint8_t>> tabulate(ops::OperationContext operation);

// The steps of steps.glsl: for each 8-bit number but the lowest the least float32 from which on the
// operation's reference kernel gives it or a greater one. The operation has one real input.
Result<std::vector<uint8_t>> realSteps(ops::OperationContext operation);

// The same of a function of sums from -`most` to `most`; the greatest int32 for a number that no
// sum gives. `resultOf` must not fall.
std::vector<uint8_t> sumSteps(const graph::Operand& output, int64_t most,
                              const std::function<int32_t(int64_t)>& resultOf);

// The bytes of kSteps steps.
inline constexpr uint64_t kSteps = 255;
inline constexpr uint64_t kStepBytes = kSteps * sizeof(uint32_t);

// The least stored number of an 8-bit type.
int32_t lowestStored(graph::OperandType type);

}  // namespace hearth::vulkan
