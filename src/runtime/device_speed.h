// SPDX-License-Identifier: Apache-2.0
// How fast a device is on this machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hearth::runtime {

// The kinds of numbers whose multiplications and additions devices compute at speeds of their own.
enum class NumberKind : uint8_t {
  kFloat32,
  kFloat16,
  kQuantized,  // 8 bits
};
inline constexpr size_t kNumberKinds = 3;

// Measured times, in seconds.
struct DeviceSpeed {
  double execution = 0;     // of any execution, whatever it computes
  double operation = 0;     // of any operation
  double argumentByte = 0;  // of each byte of the inputs and outputs of an execution
  double movedByte = 0;     // of each byte that an operation with few products reads or writes
  // Of a multiplication with its addition in a layer of many; 0 where it was not measured.
  std::array<double, kNumberKinds> product{};

  double productOf(NumberKind kind) const { return product[static_cast<size_t>(kind)]; }
  friend bool operator==(const DeviceSpeed&, const DeviceSpeed&) = default;
};

// The speed as bytes, for a store. decodeSpeed() returns nothing for bytes that no speed has.
std::vector<uint8_t> encodeSpeed(const DeviceSpeed& speed);
std::optional<DeviceSpeed> decodeSpeed(std::span<const uint8_t> bytes);

}  // namespace hearth::runtime
