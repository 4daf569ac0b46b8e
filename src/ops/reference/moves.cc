// SPDX-License-Identifier: Apache-2.0
// Operations that only move elements.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/concatenation.h"
#include "ops/dynamic_update_slice.h"
#include "ops/pad.h"
#include "ops/padding.h"
#include "ops/reference/elements.h"
#include "ops/reference/kernels.h"
#include "ops/resize.h"
#include "ops/slice.h"
#include "ops/space_to_batch.h"
#include "ops/space_to_depth.h"
#include "ops/split.h"
#include "ops/transpose.h"
#include "ops/validation.h"

namespace hearth::ops::reference {
namespace {

// For each index in the output, `source` gives the index in the first input.
template <typename Source>
Status move(const OperationContext& context, const Source& source) {
  const Tensor& data = context.inputs[0];
  const Tensor& output = context.outputs[0];
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    copyElement(data, placeOf(source(index), data.dimensions), output, place);
  });
  return {};
}

// Maps each element of images in any layout to its index [batch, row, column, channel]. Images of
// rank 3 have one column.
struct ImageView {
  explicit ImageView(const Dimensions& given, bool nchw) : dimensions(given), isNchw(nchw) {}

  int64_t batches() const { return dimensions[0]; }
  int64_t height() const { return dimensions[isNchw ? 2 : 1]; }
  int64_t width() const { return dimensions.size() == 3 ? 1 : dimensions[isNchw ? 3 : 2]; }

  Index indexOf(const Index& stored) const {
    if (stored.size() == 3) return {stored[0], stored[1], 0, stored[2]};
    if (isNchw) return {stored[0], stored[2], stored[3], stored[1]};
    return stored;
  }
  int64_t place(const Index& index) const {
    if (dimensions.size() == 3) return placeOf(Index{index[0], index[1], index[3]}, dimensions);
    if (isNchw) return placeOf(Index{index[0], index[3], index[1], index[2]}, dimensions);
    return placeOf(index, dimensions);
  }
  bool isInside(const Index& index) const {
    return index[1] >= 0 && index[1] < height() && index[2] >= 0 && index[2] < width();
  }

  const Dimensions& dimensions;
  bool isNchw;
};

}  // namespace

Status reshape(const OperationContext& context) {
  for (int64_t i = 0; i < countOf(context.outputs[0].dimensions); ++i)
    copyElement(context.inputs[0], i, context.outputs[0], i);
  return {};
}

Status copyBytes(const OperationContext& context) {
  const int64_t size = static_cast<int64_t>(graph::elementSize(context.outputs[0].type()));
  for (int64_t i = 0; i < countOf(context.outputs[0].dimensions) * size; ++i)
    storeAs(context.outputs[0], i, loadAs<uint8_t>(context.inputs[0], i));
  return {};
}

// MATRIX_DIAG and MATRIX_SET_DIAG.
Status setDiagonal(const OperationContext& context) {
  const Tensor& output = context.outputs[0];
  const bool hasMatrix = context.operation->type == OperationType::kMatrixSetDiag;
  const Tensor& diagonal = context.inputs[hasMatrix ? 1 : 0];
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    Index onDiagonal(index.begin(), index.end() - 1);
    if (index.back() == onDiagonal.back())
      return copyElement(diagonal, placeOf(onDiagonal, diagonal.dimensions), output, place);
    if (hasMatrix) return copyElement(context.inputs[0], place, output, place);
    if (graph::isQuantized(output.type())) return putReal(output, place, 0);
    const auto size = static_cast<int64_t>(graph::elementSize(output.type()));
    for (int64_t i = 0; i < size; ++i) storeAs(output, place * size + i, uint8_t{0});
  });
  return {};
}

Status transpose(const OperationContext& context) {
  HEARTH_ASSIGN(const TransposeParameters parameters, parseTranspose(context));
  return move(context, [&](const Index& index) {
    Index from(index.size());
    for (size_t i = 0; i < index.size(); ++i) from[parameters.permutation[i]] = index[i];
    return from;
  });
}

Status slice(const OperationContext& context) {
  HEARTH_ASSIGN(const SliceParameters parameters, context.operation->type == OperationType::kSlice
                                                      ? parseSlice(context)
                                                      : parseStridedSlice(context));
  // The output may lack dimensions of which one element is taken; this does not change the order of
  // elements.
  Dimensions taken;
  for (const SliceRange& range : parameters.ranges)
    taken.push_back(static_cast<uint32_t>(range.size));
  const Tensor& data = context.inputs[0];
  forEach(taken, [&](Index index, int64_t place) {
    for (size_t i = 0; i < index.size(); ++i)
      index[i] = parameters.ranges[i].begin + index[i] * parameters.ranges[i].stride;
    copyElement(data, placeOf(index, data.dimensions), context.outputs[0], place);
  });
  return {};
}

Status tile(const OperationContext& context) {
  return move(context, [&](Index index) {
    for (size_t i = 0; i < index.size(); ++i) index[i] %= context.inputs[0].dimensions[i];
    return index;
  });
}

Status broadcastTo(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  forEach(context.outputs[0].dimensions, [&](const Index& index, int64_t place) {
    copyElement(data, broadcastPlace(index, data.dimensions), context.outputs[0], place);
  });
  return {};
}

Status reverse(const OperationContext& context) {
  const Dimensions& data = context.inputs[0].dimensions;
  HEARTH_ASSIGN(const std::vector<int64_t> axes, context.intVector(1));
  std::vector<bool> isReversed(data.size(), false);
  for (const int64_t value : axes) {
    HEARTH_ASSIGN(const size_t axis, resolveAxis(context, value, data.size()));
    if (isReversed[axis])
      return fail(ErrorCode::kBadData, "{} names the dimension {} twice.", context.describe(),
                  axis);
    isReversed[axis] = true;
  }
  return move(context, [&](Index index) {
    for (size_t i = 0; i < index.size(); ++i)
      if (isReversed[i]) index[i] = data[i] - 1 - index[i];
    return index;
  });
}

Status reverseSequence(const OperationContext& context) {
  const Dimensions& data = context.inputs[0].dimensions;
  HEARTH_ASSIGN(const std::vector<int64_t> lengths, context.intVector(1));
  HEARTH_ASSIGN(const int32_t sequenceAxis, context.scalar<int32_t>(2));
  HEARTH_ASSIGN(const int32_t batchAxis, context.scalar<int32_t>(3));
  HEARTH_ASSIGN(const size_t sequence, resolveAxis(context, sequenceAxis, data.size()));
  HEARTH_ASSIGN(const size_t batch, resolveAxis(context, batchAxis, data.size()));
  if (countOf(data) == 0) return {};
  for (size_t i = 0; i < lengths.size(); ++i)
    if (lengths[i] < 0 || lengths[i] > data[sequence])
      return fail(ErrorCode::kBadData, "Length {} of {} is {}, the sequence has {} elements.", i,
                  context.describe(), lengths[i], data[sequence]);
  return move(context, [&](Index index) {
    const int64_t length = lengths[static_cast<size_t>(index[batch])];
    if (index[sequence] < length) index[sequence] = length - 1 - index[sequence];
    return index;
  });
}

Status shuffleChannels(const OperationContext& context) {
  const Dimensions& data = context.inputs[0].dimensions;
  HEARTH_ASSIGN(const int32_t groups, context.scalar<int32_t>(1));
  HEARTH_ASSIGN(const int32_t value, context.scalar<int32_t>(2));
  HEARTH_ASSIGN(const size_t axis, resolveAxis(context, value, data.size()));
  const int64_t size = int64_t{data[axis]} / groups;
  return move(context, [&](Index index) {
    index[axis] = index[axis] % groups * size + index[axis] / groups;
    return index;
  });
}

Status spaceToDepth(const OperationContext& context) {
  HEARTH_ASSIGN(const SpaceToDepthParameters parameters, parseSpaceToDepth(context));
  const bool isToDepth = context.operation->type == OperationType::kSpaceToDepth;
  const Tensor& output = context.outputs[0];
  const ImageView from(context.inputs[0].dimensions, parameters.isNchw);
  const ImageView to(output.dimensions, parameters.isNchw);
  const int64_t block = parameters.blockSize;
  const int64_t channels =
      ImageShape::of(isToDepth ? context.inputs[0].dimensions : output.dimensions,
                     parameters.isNchw)
          .channels;
  forEach(output.dimensions, [&](const Index& stored, int64_t place) {
    Index index = to.indexOf(stored);
    if (isToDepth) {
      const int64_t pixel = index[3] / channels;
      index = {index[0], index[1] * block + pixel / block, index[2] * block + pixel % block,
               index[3] % channels};
    } else {
      const int64_t pixel = index[1] % block * block + index[2] % block;
      index = {index[0], index[1] / block, index[2] / block, pixel * channels + index[3]};
    }
    copyElement(context.inputs[0], from.place(index), output, place);
  });
  return {};
}

// Batch element b of block position (r, s) is batch element (r * block width + s) * batches + b.
Status spaceToBatch(const OperationContext& context) {
  HEARTH_ASSIGN(const SpaceToBatchParameters parameters, parseSpaceToBatch(context));
  const bool isToBatch = context.operation->type == OperationType::kSpaceToBatchNd;
  const Tensor& data = context.inputs[0];
  const Tensor& output = context.outputs[0];
  const ImageView from(data.dimensions, parameters.isNchw);
  const ImageView to(output.dimensions, parameters.isNchw);
  const int64_t height = parameters.block[0];
  const int64_t width = parameters.block[1];
  forEach(output.dimensions, [&](const Index& stored, int64_t place) {
    const Index index = to.indexOf(stored);
    if (!isToBatch) {
      const int64_t position = index[1] % height * width + index[2] % width;
      const Index source = {position * to.batches() + index[0], index[1] / height, index[2] / width,
                            index[3]};
      return copyElement(data, from.place(source), output, place);
    }
    const int64_t position = index[0] / from.batches();
    const Index source = {index[0] % from.batches(),
                          index[1] * height + position / width - parameters.before[0],
                          index[2] * width + position % width - parameters.before[1], index[3]};
    if (from.isInside(source)) return copyElement(data, from.place(source), output, place);
    const uint64_t zero = graph::isQuantized(data.type())
                              ? static_cast<uint64_t>(int64_t{data.operand->zeroPoint})
                              : 0;
    const size_t size = graph::elementSize(data.type());
    std::memcpy(output.as<uint8_t>() + static_cast<size_t>(place) * size, &zero, size);
  });
  return {};
}

Status pad(const OperationContext& context) {
  HEARTH_ASSIGN(const PadParameters parameters, parsePad(context));
  const Tensor& data = context.inputs[0];
  const Tensor& output = context.outputs[0];
  const size_t size = graph::elementSize(output.type());
  forEach(output.dimensions, [&](Index index, int64_t place) {
    bool isInside = true;
    for (size_t i = 0; i < index.size(); ++i) {
      index[i] -= parameters.before[i];
      isInside = isInside && index[i] >= 0 && index[i] < data.dimensions[i];
    }
    if (isInside)
      copyElement(data, placeOf(index, data.dimensions), output, place);
    else
      std::memcpy(output.as<uint8_t>() + static_cast<size_t>(place) * size, parameters.value.data(),
                  size);
  });
  return {};
}

// Mode 0 (REFLECT) does not repeat the elements at the border, mode 1 (SYMMETRIC) does.
Status padMirrored(const OperationContext& context) {
  HEARTH_ASSIGN(const PadParameters parameters, parsePaddings(context, 1));
  HEARTH_ASSIGN(const int32_t mode, context.scalar<int32_t>(2));
  const Dimensions& data = context.inputs[0].dimensions;
  return move(context, [&](Index index) {
    for (size_t i = 0; i < index.size(); ++i) {
      index[i] -= parameters.before[i];
      if (index[i] < 0) index[i] = -index[i] - mode;
      if (index[i] >= data[i]) index[i] = 2 * (int64_t{data[i]} - 1) - index[i] + mode;
    }
    return index;
  });
}

// Concatenates inputs along an axis. TFLite defines, in float32, how an 8-bit input with another
// quantisation is converted to that of the output.
Status concatenate(const OperationContext& context) {
  HEARTH_ASSIGN(const ConcatenationParameters parameters, parseConcatenation(context));
  const Tensor& output = context.outputs[0];
  const graph::Operand& to = *output.operand;
  const QuantizedRange range = quantizedRange(to.type);
  const size_t axis = parameters.axis;
  forEach(output.dimensions, [&](Index index, int64_t place) {
    size_t number = 0;
    while (index[axis] >= context.inputs[number].dimensions[axis])
      index[axis] -= context.inputs[number++].dimensions[axis];
    const Tensor& input = context.inputs[number];
    const int64_t source = placeOf(index, input.dimensions);
    const graph::Operand& from = *input.operand;
    const bool is8Bit = to.type == OperandType::kTensorQuant8Asymm ||
                        to.type == OperandType::kTensorQuant8AsymmSigned;
    if (!is8Bit || (from.scale == to.scale && from.zeroPoint == to.zeroPoint))
      return copyElement(input, source, output, place);
    const float scale = from.scale / to.scale;
    const float bias = -static_cast<float>(from.zeroPoint) * scale;
    float stored = std::round(static_cast<float>(storedAt(input, source)) * scale + bias) +
                   static_cast<float>(to.zeroPoint);
    // With both terms infinite, the real number is 0 or far beyond the range.
    const int32_t steps = storedAt(input, source) - from.zeroPoint;
    if (std::isnan(stored))
      stored = static_cast<float>(steps < 0   ? range.lowest
                                  : steps > 0 ? range.highest
                                              : to.zeroPoint);
    putStored(output, place,
              static_cast<int32_t>(std::clamp(stored, static_cast<float>(range.lowest),
                                              static_cast<float>(range.highest))));
  });
  return {};
}

Status pack(const OperationContext& context) {
  const Tensor& output = context.outputs[0];
  HEARTH_ASSIGN(const int32_t value, context.scalar<int32_t>(0));
  HEARTH_ASSIGN(const size_t axis, resolveAxis(context, value, output.rank()));
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    Index from = index;
    from.erase(from.begin() + static_cast<ptrdiff_t>(axis));
    const Tensor& input = context.inputs[1 + static_cast<size_t>(index[axis])];
    copyElement(input, placeOf(from, input.dimensions), output, place);
  });
  return {};
}

Status split(const OperationContext& context) {
  HEARTH_ASSIGN(const SplitParameters parameters, parseSplit(context));
  const Tensor& data = context.inputs[0];
  for (size_t part = 0; part < parameters.count; ++part) {
    if (!context.hasOutput(part)) continue;
    const int64_t first = static_cast<int64_t>(part) * parameters.dimensions[parameters.axis];
    forEach(parameters.dimensions, [&](Index index, int64_t place) {
      index[parameters.axis] += first;
      copyElement(data, placeOf(index, data.dimensions), context.outputs[part], place);
    });
  }
  return {};
}

Status updateSlice(const OperationContext& context) {
  HEARTH_ASSIGN(const std::vector<int64_t> begin, parseUpdateBegin(context));
  const Tensor& part = context.inputs[1];
  const Tensor& output = context.outputs[0];
  forEach(output.dimensions, [&](Index index, int64_t place) {
    bool isInside = true;
    for (size_t i = 0; i < index.size(); ++i) {
      index[i] -= begin[i];
      isInside = isInside && index[i] >= 0 && index[i] < part.dimensions[i];
    }
    if (isInside)
      copyElement(part, placeOf(index, part.dimensions), output, place);
    else
      copyElement(context.inputs[0], place, output, place);
  });
  return {};
}

Status resizeNearest(const OperationContext& context) {
  HEARTH_ASSIGN(const ResizeParameters parameters, parseResize(context));
  const Dimensions& data = context.inputs[0].dimensions;
  const Dimensions& output = context.outputs[0].dimensions;
  const size_t height = parameters.isNchw ? 2 : 1;
  return move(context, [&](Index index) {
    for (size_t i = height; i < height + 2; ++i) {
      // In float32, as documented: some positions are rounded to just below a whole number.
      const float factor = parameters.alignCorners && output[i] > 1
                               ? static_cast<float>(data[i] - 1) / static_cast<float>(output[i] - 1)
                               : static_cast<float>(data[i]) / static_cast<float>(output[i]);
      const float offset = parameters.halfPixelCenters ? 0.5f : 0.0f;
      const float position = (static_cast<float>(index[i]) + offset) * factor;
      const float whole = parameters.alignCorners ? std::round(position) : std::floor(position);
      index[i] = std::min(static_cast<int64_t>(whole), int64_t{data[i]} - 1);
    }
    return index;
  });
}

}  // namespace hearth::ops::reference
