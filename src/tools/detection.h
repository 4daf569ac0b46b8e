// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hearth/hearth.hpp"
#include "tools/media/array.h"
#include "tools/model_facts.h"

namespace hearth::tools {

// A thing that a detector found; its edges are fractions of the picture.
struct Detection {
  uint64_t index = 0;  // class
  double score = 0;
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
};

struct Detections {
  std::vector<Detection> found;     // best score first
  size_t classOutput = 0;           // the output with the classes, whose labels count
  std::optional<double> threshold;  // below which scores mean nothing, by the metadata
};

// What a detector's outputs hold: boxes [1,N,4], which TFLite_Detection_PostProcess computes or the
// metadata calls boxes, with scores [1,N], mostly classes [1,N], and mostly the number of things.
// nullopt for other outputs. `width` and `height` of the input count for boxes in pixels.
std::optional<Detections> detectionsOf(const std::vector<Array>& outputs,
                                       const std::vector<TensorInfo>& infos,
                                       const ModelFacts& facts, double width, double height);

}  // namespace hearth::tools
