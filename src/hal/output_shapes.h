// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "graph/model.h"

namespace hearth::hal {

struct OutputShape {
  graph::Dimensions dimensions;
  bool isSufficient = true;
};

// The shapes of a computation's outputs. Copies share one list, so a driver whose shapes do not
// change gives the same ones for each computation, without memory being allocated. Value type.
class OutputShapes {
 public:
  OutputShapes() = default;
  OutputShapes(std::vector<OutputShape> shapes)
      : shapes_(std::make_shared<std::vector<OutputShape>>(std::move(shapes))) {}
  OutputShapes(std::initializer_list<OutputShape> shapes)
      : OutputShapes(std::vector<OutputShape>(shapes)) {}

  size_t size() const { return shapes_ == nullptr ? 0 : shapes_->size(); }
  bool empty() const { return size() == 0; }
  const OutputShape* begin() const { return shapes_ == nullptr ? nullptr : shapes_->data(); }
  const OutputShape* end() const { return begin() + size(); }
  const OutputShape& operator[](size_t index) const { return (*shapes_)[index]; }

  // Whether both are copies of one list. False for lists that were made apart, though they be
  // equal.
  bool isCopyOf(const OutputShapes& other) const { return shapes_ == other.shapes_; }

  void clear() { shapes_.reset(); }
  void push_back(OutputShape shape) { change().push_back(std::move(shape)); }
  // The list for changes, which other copies do not see.
  std::vector<OutputShape>& change() {
    if (shapes_ == nullptr)
      shapes_ = std::make_shared<std::vector<OutputShape>>();
    else if (shapes_.use_count() != 1)
      shapes_ = std::make_shared<std::vector<OutputShape>>(*shapes_);
    return *shapes_;
  }

 private:
  std::shared_ptr<std::vector<OutputShape>> shapes_;
};

}  // namespace hearth::hal
