// SPDX-License-Identifier: Apache-2.0
#include "ops/testing/plain_operations.h"
#include "ops/testing/plain_tensor.h"

namespace hearth::ops::plain {
namespace {

// The first position of an image that a window covers, by NNAPI's implicit padding: SAME makes as
// many outputs as there are strides in the image, and pads the end by the odd element.
int64_t paddingBefore(int64_t code, int64_t image, int64_t window, int64_t stride) {
  if (code != 1) return 0;
  const int64_t outputs = (image + stride - 1) / stride;
  return std::max<int64_t>((outputs - 1) * stride + window - image, 0) / 2;
}

struct Window {
  int64_t height, width;
  int64_t strideHeight, strideWidth;
  int64_t top, left;

  Window(const Dimensions& image, int64_t h, int64_t w, int64_t padding, int64_t strideW,
         int64_t strideH)
      : height(h),
        width(w),
        strideHeight(strideH),
        strideWidth(strideW),
        top(paddingBefore(padding, image[1], h, strideH)),
        left(paddingBefore(padding, image[2], w, strideW)) {}

  // Calls visit(y, x, row, column) for each element of the window of an output that lies inside the
  // image: its position in the window and in the image.
  template <typename Visit>
  void forEachInside(const Index& output, const Dimensions& image, const Visit& visit) const {
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        const int64_t row = output[1] * strideHeight - top + y;
        const int64_t column = output[2] * strideWidth - left + x;
        if (row >= 0 && row < image[1] && column >= 0 && column < image[2])
          visit(y, x, row, column);
      }
  }
};

// A bias of integers counts in steps of input times weights.
double biasAt(const OperationContext& context, int64_t channel) {
  const Tensor& bias = context.inputs[2];
  if (bias.type() != OperandType::kTensorInt32) return realAt(bias, channel);
  const graph::Operand& filter = *context.inputs[1].operand;
  const double scale = filter.perChannel.scales.empty()
                           ? filter.scale
                           : filter.perChannel.scales[static_cast<size_t>(channel)];
  return static_cast<double>(integerAt(bias, channel)) * context.inputs[0].operand->scale * scale;
}

void convolve(const OperationContext& context, bool isDepthwise) {
  const Tensor& data = context.inputs[0];
  const Tensor& filter = context.inputs[1];
  const Tensor& output = context.outputs[0];
  const Window window(data.dimensions, filter.dimensions[1], filter.dimensions[2],
                      scalarAt(context, 3), scalarAt(context, 4), scalarAt(context, 5));
  const int64_t multiplier = isDepthwise ? scalarAt(context, 6) : 0;
  const int64_t activation = scalarAt(context, isDepthwise ? 7 : 6);
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    const int64_t channel = index[3];
    double sum = biasAt(context, channel);
    window.forEachInside(
        index, data.dimensions, [&](int64_t y, int64_t x, int64_t row, int64_t column) {
          const auto dataAt = [&](int64_t c) {
            return realAt(data, placeOf({index[0], row, column, c}, data.dimensions));
          };
          if (isDepthwise)
            sum += dataAt(channel / multiplier) *
                   realAt(filter, placeOf({0, y, x, channel}, filter.dimensions));
          else
            for (int64_t c = 0; c < data.dimensions[3]; ++c)
              sum += dataAt(c) * realAt(filter, placeOf({channel, y, x, c}, filter.dimensions));
        });
    putReal(output, place, activate(sum, activation));
  });
}

// Each element of the input is added to a window of the output, which begins before the image by
// half of what the windows cover beyond it.
void convolveTransposed(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  const Tensor& filter = context.inputs[1];
  const Tensor& output = context.outputs[0];
  const int64_t strides[] = {scalarAt(context, 6), scalarAt(context, 5)};
  const auto positionOf = [&](size_t side, int64_t from, int64_t within) {
    const int64_t stride = strides[side];
    const int64_t covered = (data.dimensions[1 + side] - 1) * stride + filter.dimensions[1 + side];
    const int64_t beyond = std::max<int64_t>(covered - output.dimensions[1 + side], 0);
    return from * stride + within - (scalarAt(context, 4) == 1 ? beyond / 2 : 0);
  };
  std::vector<double> sums(static_cast<size_t>(countOf(output.dimensions)));
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    sums[static_cast<size_t>(place)] = biasAt(context, index[3]);
  });
  forEach(data.dimensions, [&](const Index& index, int64_t place) {
    forEach(filter.dimensions, [&](const Index& weight, int64_t weightPlace) {
      const int64_t row = positionOf(0, index[1], weight[1]);
      const int64_t column = positionOf(1, index[2], weight[2]);
      if (weight[3] != index[3] || row < 0 || row >= output.dimensions[1] || column < 0 ||
          column >= output.dimensions[2])
        return;
      sums[static_cast<size_t>(placeOf({index[0], row, column, weight[0]}, output.dimensions))] +=
          realAt(data, place) * realAt(filter, weightPlace);
    });
  });
  for (size_t i = 0; i < sums.size(); ++i)
    putReal(output, static_cast<int64_t>(i), activate(sums[i], scalarAt(context, 7)));
}

void connectFully(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  const Tensor& filter = context.inputs[1];
  const int64_t outputs = filter.dimensions[0];
  const int64_t inputs = filter.dimensions[1];
  for (int64_t row = 0; row < countOf(data.dimensions) / inputs; ++row)
    for (int64_t channel = 0; channel < outputs; ++channel) {
      double sum = biasAt(context, channel);
      for (int64_t i = 0; i < inputs; ++i)
        sum += realAt(data, row * inputs + i) * realAt(filter, channel * inputs + i);
      putReal(context.outputs[0], row * outputs + channel, activate(sum, scalarAt(context, 3)));
    }
}

// What lies outside of the image does not count.
void pool(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  const bool isAverage = context.operation->type == OperationType::kAveragePool2d;
  const Window window(data.dimensions, scalarAt(context, 5), scalarAt(context, 4),
                      scalarAt(context, 1), scalarAt(context, 2), scalarAt(context, 3));
  forEach(context.outputs[0].dimensions, [&](const Index& index, int64_t place) {
    double sum = 0;
    double count = 0;
    double greatest = -std::numeric_limits<double>::infinity();
    window.forEachInside(
        index, data.dimensions, [&](int64_t, int64_t, int64_t row, int64_t column) {
          const double value =
              realAt(data, placeOf({index[0], row, column, index[3]}, data.dimensions));
          sum += value;
          ++count;
          greatest = std::max(greatest, value);
        });
    putReal(context.outputs[0], place,
            activate(isAverage ? sum / count : greatest, scalarAt(context, 6)));
  });
}

void multiplyMatrices(const OperationContext& context) {
  const Tensor& left = context.inputs[0];
  const Tensor& right = context.inputs[1];
  const bool isLeftTransposed = scalarAt(context, 2) != 0;
  const bool isRightTransposed = scalarAt(context, 3) != 0;
  const size_t column = context.outputs[0].rank() - 1;
  const size_t row = column - 1;
  const uint32_t depth = left.dimensions[left.rank() - (isLeftTransposed ? 2 : 1)];
  forEach(context.outputs[0].dimensions, [&](const Index& index, int64_t place) {
    double sum = 0;
    for (int64_t i = 0; i < depth; ++i) {
      Index a = index;
      a[isLeftTransposed ? column : row] = index[row];
      a[isLeftTransposed ? row : column] = i;
      Index b = index;
      b[isRightTransposed ? row : column] = index[column];
      b[isRightTransposed ? column : row] = i;
      sum += realAt(left, broadcastPlace(a, left.dimensions)) *
             realAt(right, broadcastPlace(b, right.dimensions));
    }
    putReal(context.outputs[0], place, sum);
  });
}

void resizeBilinear(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  const Tensor& output = context.outputs[0];
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    double value = 0;
    const auto sample = [&](size_t axis, bool isUpper, double* weight) {
      const double position =
          static_cast<double>(index[axis]) * data.dimensions[axis] / output.dimensions[axis];
      const auto lower = static_cast<int64_t>(position);
      const double above = position - static_cast<double>(lower);
      *weight *= isUpper ? above : 1 - above;
      return std::min<int64_t>(lower + (isUpper ? 1 : 0), data.dimensions[axis] - 1);
    };
    for (const bool isLower : {true, false})
      for (const bool isLeft : {true, false}) {
        double weight = 1;
        const int64_t row = sample(1, !isLower, &weight);
        const int64_t column = sample(2, !isLeft, &weight);
        value += weight * realAt(data, placeOf({index[0], row, column, index[3]}, data.dimensions));
      }
    putReal(output, place, value);
  });
}

// A sequence of steps without a projection and without normalisation, activation tanh. Inputs 1-4
// are the weights of the gates (input, forget, cell, output), 5-8 the recurrent ones, 9-11 those
// through which the input, forget and output gates see the cell, 12-15 the biases, 18 and 19 the
// states, 21 the bound of the cell, 23 whether time is the first dimension. Without weights for it
// the input gate is what the forget gate leaves.
void runLstm(const OperationContext& context) {
  enum Gate : size_t { kInput, kForget, kCell, kOutput };
  const Tensor& data = context.inputs[0];
  const bool isTimeMajor = scalarAt(context, 23) != 0;
  const int64_t steps = data.dimensions[isTimeMajor ? 0 : 1];
  const int64_t batches = data.dimensions[isTimeMajor ? 1 : 0];
  const int64_t features = data.dimensions[2];
  const int64_t units = context.inputs[2].dimensions[0];
  const double bound = realAt(context.inputs[21], 0);
  const auto sigmoid = [](double x) {
    return 1 / (1 + std::exp(-x));
  };
  for (int64_t batch = 0; batch < batches; ++batch) {
    std::vector<double> hidden;
    std::vector<double> cell;
    for (int64_t unit = 0; unit < units; ++unit) {
      hidden.push_back(realAt(context.inputs[18], batch * units + unit));
      cell.push_back(realAt(context.inputs[19], batch * units + unit));
    }
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t row = isTimeMajor ? step * batches + batch : batch * steps + step;
      const auto sumOf = [&](Gate gate, int64_t unit, const std::vector<double>& seenCell) {
        double sum = realAt(context.inputs[12 + gate], unit);
        for (int64_t i = 0; i < features; ++i)
          sum += realAt(context.inputs[1 + gate], unit * features + i) *
                 realAt(data, row * features + i);
        for (int64_t i = 0; i < units; ++i)
          sum +=
              realAt(context.inputs[5 + gate], unit * units + i) * hidden[static_cast<size_t>(i)];
        const size_t peephole = gate == kOutput ? 11 : 9 + gate;
        if (gate != kCell && context.hasInput(peephole))
          sum += realAt(context.inputs[peephole], unit) * seenCell[static_cast<size_t>(unit)];
        return sum;
      };
      std::vector<double> newCell = cell;
      for (int64_t unit = 0; unit < units; ++unit) {
        const double forget = sigmoid(sumOf(kForget, unit, cell));
        const double input =
            context.hasInput(1 + kInput) ? sigmoid(sumOf(kInput, unit, cell)) : 1 - forget;
        double& value = newCell[static_cast<size_t>(unit)];
        value = forget * value + input * std::tanh(sumOf(kCell, unit, cell));
        if (bound > 0) value = std::clamp(value, -bound, bound);
      }
      std::vector<double> newHidden(hidden.size());
      for (int64_t unit = 0; unit < units; ++unit) {
        const auto at = static_cast<size_t>(unit);
        newHidden[at] = sigmoid(sumOf(kOutput, unit, newCell)) * std::tanh(newCell[at]);
        putReal(context.outputs[0], row * units + unit, newHidden[at]);
      }
      hidden = std::move(newHidden);
      cell = std::move(newCell);
    }
  }
}

}  // namespace

bool computeLayer(const OperationContext& context) {
  switch (context.operation->type) {
    case OperationType::kConv2d:
    case OperationType::kDepthwiseConv2d:
      convolve(context, context.operation->type == OperationType::kDepthwiseConv2d);
      return true;
    case OperationType::kTransposeConv2d:
      convolveTransposed(context);
      return true;
    case OperationType::kFullyConnected:
      connectFully(context);
      return true;
    case OperationType::kAveragePool2d:
    case OperationType::kMaxPool2d:
      pool(context);
      return true;
    case OperationType::kBatchMatmul:
      multiplyMatrices(context);
      return true;
    case OperationType::kResizeBilinear:
      resizeBilinear(context);
      return true;
    case OperationType::kUnidirectionalSequenceLstm:
      runLstm(context);
      return true;
    default:
      return false;
  }
}

}  // namespace hearth::ops::plain
