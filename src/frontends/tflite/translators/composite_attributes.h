// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"

namespace hearth::tflite {

// The attributes of a STABLEHLO_COMPOSITE: a map in a FlexBuffer. A view of the file's bytes.
class CompositeAttributes {
 public:
  // No bytes at all are an empty map. kBadData for bytes that are no FlexBuffer with a map.
  static Result<CompositeAttributes> parse(std::span<const uint8_t> bytes);

  // The value of a number; nothing when the map has no number under this name.
  std::optional<double> number(const char* name) const;

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace hearth::tflite
