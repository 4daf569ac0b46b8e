// SPDX-License-Identifier: Apache-2.0
// Segmentation results as pictures.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "hearth/hearth.hpp"
#include "tools/media/array.h"
#include "tools/media/picture.h"

namespace hearth::tools {

// A class for each position of a grid, rows from top to bottom.
struct ClassMap {
  uint32_t width = 0;
  uint32_t height = 0;
  std::vector<uint32_t> classes;
};

using Colour = std::array<uint8_t, 3>;

// The colour of a class. Neighbouring indices differ strongly; class 0 (background) is black.
Colour classColour(uint32_t index);

// The class map in an output: [1,H,W] of an integer type without quantisation, or scores [1,H,W,C]
// with 2 <= C <= 4096, of which the first of the largest wins. H and W are at least 2. nullopt for
// other outputs.
std::optional<ClassMap> classMapOf(const Array& output, const TensorInfo& tensor);

// Pixels of each class that occurs, most frequent first.
std::vector<std::pair<uint32_t, uint64_t>> countClasses(const ClassMap& map);

// Mixes the picture half and half with the colours of the classes, in the picture's size; the
// background keeps the picture. Without a picture, draws the colours alone, in the map's size.
Picture drawOverlay(const ClassMap& map, const std::optional<Picture>& picture);

}  // namespace hearth::tools
