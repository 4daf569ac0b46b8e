// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "hearth/hearth.hpp"
#include "tools/media/array.h"

namespace hearth::tools {

// A joint of a body or hand, or a point of a face, in fractions of the picture.
struct KeyPoint {
  double x = 0;
  double y = 0;
  std::optional<double> score;
};

// The key points in an output, one or a few sets of them: 17 of a body as y, x and score in
// fractions ([…,17,3]); 21 of a hand, 33 of a body, 68, 98, 106, 468 or 478 of a face as x, y and
// maybe z in pixels of the input ([…,21,3], […,21,2]; of a hand and a large face also one list of
// numbers), which has `width` and `height`; any number of points […,n,2] or […,n,3] if the output
// is called key points or landmarks, by its own name or by `name` of the metadata (empty: none).
// nullopt for other outputs.
std::optional<std::vector<KeyPoint>> keyPointsOf(const Array& output, const TensorInfo& tensor,
                                                 std::string_view name, double width,
                                                 double height);

}  // namespace hearth::tools
