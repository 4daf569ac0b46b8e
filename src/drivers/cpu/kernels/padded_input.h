// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "drivers/cpu/microkernels/portable/convolution.h"

namespace hearth::cpu {

// The int8 input of a convolution with its padding around it, made unsigned. All windows lie in it
// as a whole, so a product reads them where they are, and nothing is gathered. Thread-safe.
class PaddedInput {
 public:
  // `inputZero` fills the padding. None where the padded input takes more than `mostBytes`.
  static std::optional<PaddedInput> make(const Convolution& convolution, int32_t inputZero,
                                         size_t mostBytes);

  // The convolution over the padded input, which needs no padding.
  Convolution geometry() const;

  size_t lines() const { return geometry_.batch * height_; }  // of all images
  size_t lineBytes() const { return width_ * geometry_.groupInputChannels; }
  size_t bytes() const { return lines() * lineBytes(); }

  // Writes the lines [first, last) of the padded input, which begins at `target`.
  void fill(const int8_t* source, size_t first, size_t last, uint8_t* target) const;

  // Where the pixels of a window lie, in bytes from the first one, in the filter's order.
  const std::vector<size_t>& places() const { return places_; }

  // Finds the first pixels of `count` windows, from the window `first` on, in a padded input.
  void findWindows(const uint8_t* input, size_t first, size_t count, const uint8_t** windows) const;

 private:
  PaddedInput(const Convolution& convolution, int32_t inputZero, size_t height, size_t width);

  const Convolution geometry_;
  const uint8_t fill_;
  const size_t height_, width_;  // of a padded image
  std::vector<size_t> places_;
};

}  // namespace hearth::cpu
