// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "ops/element_visitor.h"
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/resize.h"

namespace hearth::ops {
namespace {

// An output position lies between two input positions, `weight` of the way to the upper one.
struct Sample {
  uint32_t lower;
  uint32_t upper;
  float weight;
};

std::vector<Sample> samplePositions(uint32_t input, uint32_t output,
                                    const ResizeParameters& parameters) {
  const float scale = resizeScale(input, output, parameters.alignCorners);
  const int64_t last = int64_t{input} - 1;
  std::vector<Sample> samples(output);
  for (uint32_t i = 0; i < output; ++i) {
    const float position = parameters.halfPixelCenters
                               ? (static_cast<float>(i) + 0.5f) * scale - 0.5f
                               : static_cast<float>(i) * scale;
    const int64_t floor = static_cast<int64_t>(std::floor(position));
    const int64_t lower = std::clamp<int64_t>(floor, 0, last);
    const int64_t upper = std::clamp<int64_t>(floor + 1, 0, last);
    samples[i] = {static_cast<uint32_t>(lower), static_cast<uint32_t>(upper),
                  lower == upper ? 0.0f : position - static_cast<float>(lower)};
  }
  return samples;
}

// Interpolates one input row to the output's width, as float.
template <typename T>
void stretchRow(const T* row, const std::vector<Sample>& columns, size_t depth, float* target) {
  for (const Sample& column : columns) {
    const T* lower = row + column.lower * depth;
    const T* upper = row + column.upper * depth;
    const float weight = column.weight;
    for (size_t c = 0; c < depth; ++c) {
      const float a = static_cast<float>(lower[c]);
      target[c] = a + (static_cast<float>(upper[c]) - a) * weight;
    }
    target += depth;
  }
}

template <typename T>
void blendRows(const float* lower, const float* upper, float weight, size_t count, T* target) {
  if constexpr (std::is_integral_v<T>) {
    // Adds a shift that makes all numbers non-negative: for these, adding a half and truncating
    // rounds.
    constexpr float kShift = -static_cast<float>(std::numeric_limits<T>::min());
    for (size_t i = 0; i < count; ++i) {
      const float value = lower[i] + (upper[i] - lower[i]) * weight;
      target[i] = static_cast<T>(static_cast<int32_t>(value + (kShift + 0.5f)) -
                                 static_cast<int32_t>(kShift));
    }
  } else {
    for (size_t i = 0; i < count; ++i)
      target[i] = static_cast<T>(lower[i] + (upper[i] - lower[i]) * weight);
  }
}

template <typename T>
void resizeImage(const T* source, size_t sourceRow, const std::vector<Sample>& rows,
                 const std::vector<Sample>& columns, size_t depth, T* target) {
  constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  const size_t width = columns.size() * depth;
  // The two interpolated rows around the current position. When the position moves on, the upper
  // row becomes the lower one and keeps its buffer.
  std::vector<float> buffers[2] = {std::vector<float>(width), std::vector<float>(width)};
  uint32_t held[2] = {kNone, kNone};
  const auto stretched = [&](uint32_t row, uint32_t other) -> const float* {
    for (const int i : {0, 1})
      if (held[i] == row) return buffers[i].data();
    const int victim = held[0] == other ? 1 : 0;
    stretchRow(source + row * sourceRow, columns, depth, buffers[victim].data());
    held[victim] = row;
    return buffers[victim].data();
  };
  for (const Sample& row : rows) {
    const float* lower = stretched(row.lower, row.upper);
    const float* upper = stretched(row.upper, row.lower);
    blendRows(lower, upper, row.weight, width, target);
    target += width;
  }
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const ResizeParameters parameters, parseResize(context));
  const Tensor& input = context.inputs[0];
  // Without this, the loops would run over the sides of an empty output, however long they are.
  if (context.outputs[0].elementCount() == 0) return {};
  const ResizeImages images(input.dimensions, parameters.isNchw);
  const size_t depth = images.depth;
  const std::vector<Sample> rows =
      samplePositions(images.height, parameters.outputHeight, parameters);
  const std::vector<Sample> columns =
      samplePositions(images.width, parameters.outputWidth, parameters);
  const size_t sourceRow = depth * images.width;
  const size_t sourceImage = sourceRow * images.height;
  const size_t targetImage = depth * columns.size() * rows.size();
  return visitElementType(input.type(), [&]<typename T>(std::type_identity<T>) -> Status {
    if constexpr (sizeof(T) <= 4 && !std::is_same_v<T, int32_t> && !std::is_same_v<T, uint32_t>)
      for (uint64_t image = 0; image < images.count; ++image)
        resizeImage(input.as<T>() + image * sourceImage, sourceRow, rows, columns, depth,
                    context.outputs[0].as<T>() + image * targetImage);
    return {};
  });
}

}  // namespace

const OperationDefinition kResizeBilinearOperation = {OperationType::kResizeBilinear,
                                                      validateResize, prepareResize, execute};

}  // namespace hearth::ops
