// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/resize.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

std::vector<uint32_t> nearestPositions(uint32_t input, uint32_t output,
                                       const ResizeParameters& parameters) {
  const float scale = resizeScale(input, output, parameters.alignCorners);
  const float offset = parameters.halfPixelCenters ? 0.5f : 0.0f;
  std::vector<uint32_t> positions(output);
  for (uint32_t i = 0; i < output; ++i) {
    const float position = (static_cast<float>(i) + offset) * scale;
    const float rounded = parameters.alignCorners ? std::round(position) : std::floor(position);
    positions[i] = static_cast<uint32_t>(
        std::clamp<int64_t>(static_cast<int64_t>(rounded), 0, int64_t{input} - 1));
  }
  return positions;
}

// One row of pixels of `bytes` each.
template <size_t kBytes>
void copyRow(const uint8_t* source, const std::vector<uint32_t>& columns, uint8_t* target) {
  for (size_t i = 0; i < columns.size(); ++i)
    std::memcpy(target + i * kBytes, source + columns[i] * kBytes, kBytes);
}

void copyRow(const uint8_t* source, const std::vector<uint32_t>& columns, size_t bytes,
             uint8_t* target) {
  switch (bytes) {
    case 1:
      return copyRow<1>(source, columns, target);
    case 2:
      return copyRow<2>(source, columns, target);
    case 4:
      return copyRow<4>(source, columns, target);
    default:
      for (const uint32_t column : columns) {
        std::memcpy(target, source + column * bytes, bytes);
        target += bytes;
      }
  }
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const ResizeParameters parameters, parseResize(context));
  const Tensor& input = context.inputs[0];
  // Without this, the loops would run over the sides of an empty output, however long they are.
  if (context.outputs[0].elementCount() == 0) return {};
  const ResizeImages images(input.dimensions, parameters.isNchw);
  const size_t pixel = graph::elementSize(input.type()) * images.depth;
  const std::vector<uint32_t> rows =
      nearestPositions(images.height, parameters.outputHeight, parameters);
  const std::vector<uint32_t> columns =
      nearestPositions(images.width, parameters.outputWidth, parameters);
  const size_t inputRow = pixel * images.width;
  const size_t outputRow = pixel * parameters.outputWidth;
  const uint8_t* source = input.as<uint8_t>();
  uint8_t* target = context.outputs[0].as<uint8_t>();
  const uint64_t height = rows.size();
  threads::forRanges(context.threadPool, images.count * height, threads::grainOf(outputRow),
                     [&](uint64_t begin, uint64_t end) {
                       for (uint64_t row = begin; row < end; ++row) {
                         const uint64_t i = row % height;
                         uint8_t* out = target + row * outputRow;
                         if (row > begin && i > 0 && rows[i] == rows[i - 1])
                           std::memcpy(out, out - outputRow, outputRow);
                         else
                           copyRow(source + (row / height * images.height + rows[i]) * inputRow,
                                   columns, pixel, out);
                       }
                     });
  return {};
}

}  // namespace

const OperationDefinition kResizeNearestNeighborOperation = {
    OperationType::kResizeNearestNeighbor, validateResize, prepareResize, execute};

}  // namespace hearth::ops
