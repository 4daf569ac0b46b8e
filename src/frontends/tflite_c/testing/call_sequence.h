// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hearth::tflite_c::testing {

// Calls functions of TensorFlow Lite's interface in an order and with arguments that `bytes`
// choose, on a model that they choose or damage, and deletes everything in an order of their own.
// Returns how many calls succeeded. `models` are bytes of files.
size_t runCallSequence(std::span<const uint8_t> bytes,
                       std::span<const std::span<const uint8_t>> models);

// Does the same with an input of tflite_call_sequence_fuzz: two bytes that say how many bytes the
// calls take, highest first, then the calls, then the one model.
size_t runCallSequence(std::span<const uint8_t> input);

}  // namespace hearth::tflite_c::testing
