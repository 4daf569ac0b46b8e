// SPDX-License-Identifier: Apache-2.0
#include "ops/testing/plain_operations.h"
#include "ops/testing/plain_tensor.h"

namespace hearth::ops::plain {
namespace {

// `source` gives the index in the data of each index in the output.
template <typename Source>
void move(const OperationContext& context, const Source& source) {
  const Tensor& data = context.inputs[0];
  const Tensor& output = context.outputs[0];
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    copyElement(data, placeOf(source(index), data.dimensions), output, place);
  });
}

void pad(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  const Tensor& output = context.outputs[0];
  const Index paddings = numbersAt(context, 1);
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    Index from = index;
    bool isInside = true;
    for (size_t i = 0; i < from.size(); ++i) {
      from[i] -= paddings[2 * i];
      isInside = isInside && from[i] >= 0 && from[i] < data.dimensions[i];
    }
    if (isInside)
      copyElement(data, placeOf(from, data.dimensions), output, place);
    else if (isInteger(output.type()))
      putInteger(output, place, 0);
    else
      putReal(output, place, 0.0);
  });
}

// Inputs one after the other along an axis.
void concatenate(const OperationContext& context, size_t axis) {
  const Tensor& output = context.outputs[0];
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    Index from = index;
    size_t input = 0;
    while (from[axis] >= context.inputs[input].dimensions[axis])
      from[axis] -= context.inputs[input++].dimensions[axis];
    copyElement(context.inputs[input], placeOf(from, context.inputs[input].dimensions), output,
                place);
  });
}

void pack(const OperationContext& context) {
  const Tensor& output = context.outputs[0];
  const size_t axis = axisOf(scalarAt(context, 0), output.rank());
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    Index from = index;
    from.erase(from.begin() + static_cast<ptrdiff_t>(axis));
    const Tensor& input = context.inputs[1 + static_cast<size_t>(index[axis])];
    copyElement(input, placeOf(from, input.dimensions), output, place);
  });
}

void gather(const OperationContext& context) {
  const Dimensions& data = context.inputs[0].dimensions;
  const Tensor& indices = context.inputs[2];
  const size_t axis = axisOf(scalarAt(context, 1), data.size());
  move(context, [&](const Index& index) {
    const auto begin = index.begin() + static_cast<ptrdiff_t>(axis);
    const auto end = begin + static_cast<ptrdiff_t>(indices.rank());
    Index from(index.begin(), begin);
    from.push_back(integerAt(indices, placeOf(Index(begin, end), indices.dimensions)));
    from.insert(from.end(), end, index.end());
    return from;
  });
}

// The last dimension of the indices leads into the data.
void gatherNd(const OperationContext& context) {
  const Tensor& indices = context.inputs[1];
  move(context, [&](const Index& index) {
    const auto rest = index.begin() + static_cast<ptrdiff_t>(indices.rank()) - 1;
    Index from;
    for (uint32_t i = 0; i < indices.dimensions.back(); ++i) {
      Index at(index.begin(), rest);
      at.push_back(i);
      from.push_back(integerAt(indices, placeOf(at, indices.dimensions)));
    }
    from.insert(from.end(), rest, index.end());
    return from;
  });
}

void update(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  const Tensor& part = context.inputs[1];
  const Tensor& output = context.outputs[0];
  const Index begin = numbersAt(context, 2);
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    Index from = index;
    bool isInside = true;
    for (size_t i = 0; i < from.size(); ++i) {
      from[i] -= begin[i];
      isInside = isInside && from[i] >= 0 && from[i] < part.dimensions[i];
    }
    if (isInside)
      copyElement(part, placeOf(from, part.dimensions), output, place);
    else
      copyElement(data, place, output, place);
  });
}

void resizeNearest(const OperationContext& context) {
  const Dimensions& data = context.inputs[0].dimensions;
  const Dimensions& output = context.outputs[0].dimensions;
  move(context, [&](Index index) {
    // In float, as it is documented: some quotients come out below a whole number.
    for (const size_t i : {1, 2}) {
      const float factor = static_cast<float>(data[i]) / static_cast<float>(output[i]);
      index[i] = std::min(static_cast<int64_t>(static_cast<float>(index[i]) * factor),
                          int64_t{data[i]} - 1);
    }
    return index;
  });
}

}  // namespace

bool computeMove(const OperationContext& context) {
  const Dimensions& data = context.inputs[0].dimensions;
  switch (context.operation->type) {
    case OperationType::kReshape:
    case OperationType::kExpandDims:
      for (int64_t i = 0; i < countOf(data); ++i)
        copyElement(context.inputs[0], i, context.outputs[0], i);
      return true;
    case OperationType::kTranspose: {
      const Index order = numbersAt(context, 1);
      move(context, [&](const Index& index) {
        Index from(index.size());
        for (size_t i = 0; i < index.size(); ++i) from[static_cast<size_t>(order[i])] = index[i];
        return from;
      });
      return true;
    }
    case OperationType::kSlice: {
      const Index begin = numbersAt(context, 1);
      move(context, [&](Index index) {
        for (size_t i = 0; i < index.size(); ++i) index[i] += begin[i];
        return index;
      });
      return true;
    }
    case OperationType::kStridedSlice: {
      const Index begin = numbersAt(context, 1);
      const Index strides = numbersAt(context, 3);
      move(context, [&](Index index) {
        for (size_t i = 0; i < index.size(); ++i) index[i] = begin[i] + index[i] * strides[i];
        return index;
      });
      return true;
    }
    case OperationType::kTile:
      move(context, [&](Index index) {
        for (size_t i = 0; i < index.size(); ++i) index[i] %= data[i];
        return index;
      });
      return true;
    case OperationType::kBroadcastTo:
      forEach(context.outputs[0].dimensions, [&](const Index& index, int64_t place) {
        copyElement(context.inputs[0], broadcastPlace(index, data), context.outputs[0], place);
      });
      return true;
    case OperationType::kReverse: {
      const Index axes = numbersAt(context, 1);
      move(context, [&](Index index) {
        for (const int64_t axis : axes) {
          const size_t i = axisOf(axis, data.size());
          index[i] = data[i] - 1 - index[i];
        }
        return index;
      });
      return true;
    }
    case OperationType::kSpaceToDepth: {
      const int64_t block = scalarAt(context, 1);
      move(context, [&](const Index& index) {
        const int64_t pixel = index[3] / data[3];
        return Index{index[0], index[1] * block + pixel / block, index[2] * block + pixel % block,
                     index[3] % data[3]};
      });
      return true;
    }
    case OperationType::kDepthToSpace: {
      const int64_t block = scalarAt(context, 1);
      const int64_t channels = context.outputs[0].dimensions[3];
      move(context, [&](const Index& index) {
        const int64_t pixel = index[1] % block * block + index[2] % block;
        return Index{index[0], index[1] / block, index[2] / block, pixel * channels + index[3]};
      });
      return true;
    }
    case OperationType::kPad:
      pad(context);
      return true;
    case OperationType::kConcatenation:
      concatenate(context, axisOf(scalarAt(context, context.inputs.size() - 1), data.size()));
      return true;
    case OperationType::kPack:
      pack(context);
      return true;
    case OperationType::kGather:
      gather(context);
      return true;
    case OperationType::kGatherNd:
      gatherNd(context);
      return true;
    case OperationType::kDynamicUpdateSlice:
      update(context);
      return true;
    case OperationType::kResizeNearestNeighbor:
      resizeNearest(context);
      return true;
    default:
      return false;
  }
}

}  // namespace hearth::ops::plain
