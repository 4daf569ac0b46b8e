// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth::tflite {

// The attributes of a STABLEHLO_COMPOSITE or the options of a custom operation: a map in a
// FlexBuffer. A view of the file's bytes.
class FlexAttributes {
 public:
  // No bytes are an empty map. kBadData for bytes that are not a FlexBuffer with a map.
  static Result<FlexAttributes> parse(std::span<const uint8_t> bytes);

  // A number; nothing when the map has no number of this name.
  std::optional<double> number(const char* name) const;
  // A truth value, which some converters write as a number; nothing for anything else.
  std::optional<bool> truth(const char* name) const;
  // A list of numbers, typed or not; nothing when the map has no such list, or one with anything
  // else in it.
  std::optional<std::vector<double>> numbers(const char* name) const;
  // Nothing when the map has no text of this name.
  std::optional<std::string> text(const char* name) const;
  // The strings of a list; none for anything else. What is no string is left out.
  std::vector<std::string_view> texts(const char* name) const;

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace hearth::tflite
