// SPDX-License-Identifier: Apache-2.0
// Converts a picture to the input of a model.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/result.h"
#include "hearth/hearth.hpp"
#include "tools/media/array.h"
#include "tools/media/picture.h"

namespace hearth::tools {

// (sample - mean) / std for each of R, G and B, in units of 0 to 255. Grey tensors use the first.
struct Normalization {
  std::array<double, 3> mean{};
  std::array<double, 3> std{};
};

// How a tensor's dimensions hold a picture.
struct PictureLayout {
  uint32_t height = 0;  // 0 = the picture's own
  uint32_t width = 0;
  uint32_t channels = 0;  // 1 or 3
  bool isPlanar = false;
};

// [1,H,W,1|3], [1,1|3,H,W] (planar), [1,H,W], [H,W,1|3] and [H,W]; a dimension of 0 is not known.
// kBadData for other shapes.
Result<PictureLayout> pictureLayout(const TensorInfo& tensor);

// Resizes and converts: to the sample for uint8, sample - 128 for int8, sample / 127.5 - 1 for
// float16 and float32. A normalization replaces these formulas; its result is quantised if the
// tensor has a scale and zero point. kBadData for shapes and kUnsupported for types that cannot
// hold a picture.
Result<Array> pictureToTensor(const Picture& picture, const TensorInfo& tensor,
                              const std::optional<Normalization>& normalization);

}  // namespace hearth::tools
