// SPDX-License-Identifier: Apache-2.0
// Operations that scale elements by others of their row, group or neighbourhood: soft-max and the
// normalisations.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/group_norm.h"
#include "ops/padding.h"
#include "ops/reference/elements.h"
#include "ops/reference/kernels.h"
#include "ops/softmax.h"
#include "ops/softmax_table.h"
#include "ops/validation.h"

namespace hearth::ops::reference {
namespace {

// Mean and variance of a sequence of values.
class Moments {
 public:
  void add(double value) { sum_ += value, ++count_; }
  double mean() const { return sum_ / count_; }
  void addSquare(double value) { squares_ += (value - mean()) * (value - mean()); }
  double variance() const { return squares_ / count_; }

 private:
  double sum_ = 0;
  double count_ = 0;
  double squares_ = 0;
};

// TFLite defines the soft-max of 16-bit numbers by a table and interpolation.
void softmaxSymmetric16(const OperationContext& context, const SoftmaxParameters& p) {
  const Tensor& data = context.inputs[0];
  const SoftmaxTable table(data.operand->scale, p.beta);
  forEachRow(data.dimensions, p.axis, [&](int64_t first, int64_t step, int64_t size) {
    std::vector<int16_t> row;
    for (int64_t i = 0; i < size; ++i) row.push_back(loadAs<int16_t>(data, first + i * step));
    table.apply(row, row);
    for (int64_t i = 0; i < size; ++i)
      storeAs(context.outputs[0], first + i * step, row[static_cast<size_t>(i)]);
  });
}

}  // namespace

Status softmax(const OperationContext& context) {
  HEARTH_ASSIGN(const SoftmaxParameters p, parseSoftmax(context));
  const bool isLog = context.operation->type == OperationType::kLogSoftmax;
  const Tensor& data = context.inputs[0];
  if (data.type() == OperandType::kTensorQuant16Symm) {
    softmaxSymmetric16(context, p);
    return {};
  }
  forEachRow(data.dimensions, p.axis, [&](int64_t first, int64_t step, int64_t size) {
    // A common summand of the exponents cancels out. The greatest is subtracted, so that none
    // becomes infinite.
    double greatest = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < size; ++i)
      greatest = std::max(greatest, realAt(data, first + i * step));
    const auto exponentAt = [&](int64_t i) {
      return p.beta * (realAt(data, first + i * step) - greatest);
    };
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) sum += std::exp(exponentAt(i));
    for (int64_t i = 0; i < size; ++i)
      putReal(context.outputs[0], first + i * step,
              isLog ? exponentAt(i) - std::log(sum) : std::exp(exponentAt(i)) / sum);
  });
  return {};
}

Status normalizeLength(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  HEARTH_ASSIGN(const int32_t value, context.scalar<int32_t>(1, -1));
  HEARTH_ASSIGN(const size_t axis, resolveAxis(context, value, data.rank()));
  forEachRow(data.dimensions, axis, [&](int64_t first, int64_t step, int64_t size) {
    double squares = 0;
    for (int64_t i = 0; i < size; ++i) {
      const double element = realAt(data, first + i * step);
      squares += element * element;
    }
    const double length = std::max(std::sqrt(squares), 1e-6);
    for (int64_t i = 0; i < size; ++i)
      putReal(context.outputs[0], first + i * step, realAt(data, first + i * step) / length);
  });
  return {};
}

// Scales each element by the squares of the elements up to a radius away. Sums over wide windows
// are differences of running sums, so that time does not depend on the radius. Where a row has
// large and small numbers these lose digits, so narrow windows are added up one by one.
Status normalizeResponse(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  HEARTH_ASSIGN(const int32_t radius, context.scalar<int32_t>(1));
  const double bias = realAt(context.inputs[2], 0);
  const double alpha = realAt(context.inputs[3], 0);
  const double beta = realAt(context.inputs[4], 0);
  HEARTH_ASSIGN(const int32_t value, context.scalar<int32_t>(5, -1));
  HEARTH_ASSIGN(const size_t axis, resolveAxis(context, value, data.rank()));
  constexpr int32_t kNarrow = 64;
  const bool isNarrow = radius <= kNarrow;
  forEachRow(data.dimensions, axis, [&](int64_t first, int64_t step, int64_t size) {
    std::vector<double> squares;
    std::vector<double> sums = {0.0};
    for (int64_t i = 0; i < size; ++i) {
      const double element = realAt(data, first + i * step);
      squares.push_back(element * element);
      sums.push_back(sums.back() + squares.back());
    }
    for (int64_t i = 0; i < size; ++i) {
      const auto begin = static_cast<size_t>(std::max<int64_t>(i - radius, 0));
      const auto end = static_cast<size_t>(std::min<int64_t>(i + radius + 1, size));
      double sum = sums[end] - sums[begin];
      if (isNarrow) {
        sum = 0.0;
        for (size_t k = begin; k < end; ++k) sum += squares[k];
      }
      putReal(context.outputs[0], first + i * step,
              realAt(data, first + i * step) * std::pow(bias + alpha * sum, -beta));
    }
  });
  return {};
}

Status normalizeMeanSquare(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  const double epsilon = realAt(context.inputs[2], 0);
  forEachRow(data.dimensions, data.rank() - 1, [&](int64_t first, int64_t, int64_t size) {
    double squares = 0;
    for (int64_t i = 0; i < size; ++i) squares += realAt(data, first + i) * realAt(data, first + i);
    const double root = std::sqrt(squares / static_cast<double>(size) + epsilon);
    for (int64_t i = 0; i < size; ++i)
      putReal(context.outputs[0], first + i,
              realAt(data, first + i) / root *
                  (context.hasInput(1) ? realAt(context.inputs[1], i) : 1.0));
  });
  return {};
}

// Normalises groups of neighbouring channels of each batch element.
Status normalizeGroups(const OperationContext& context) {
  HEARTH_ASSIGN(const GroupNormParameters p, parseGroupNorm(context));
  const Tensor& data = context.inputs[0];
  if (countOf(data.dimensions) == 0) return {};
  const auto inner = static_cast<int64_t>(p.inner);
  const auto channels = static_cast<int64_t>(p.channels());
  const auto groupOf = [&](int64_t place) {
    const int64_t batch = place / (inner * channels * static_cast<int64_t>(p.outer));
    const int64_t group = place / inner % channels / static_cast<int64_t>(p.groupChannels);
    return static_cast<size_t>(batch) * p.groups + static_cast<size_t>(group);
  };
  std::vector<Moments> moments(p.batches * p.groups);
  const int64_t count = countOf(data.dimensions);
  for (int64_t i = 0; i < count; ++i) moments[groupOf(i)].add(realAt(data, i));
  for (int64_t i = 0; i < count; ++i) moments[groupOf(i)].addSquare(realAt(data, i));
  for (int64_t i = 0; i < count; ++i) {
    const Moments& group = moments[groupOf(i)];
    const int64_t channel = i / inner % channels;
    const double scale = context.hasInput(1) ? realAt(context.inputs[1], channel) : 1.0;
    const double offset = context.hasInput(2) ? realAt(context.inputs[2], channel) : 0.0;
    putReal(context.outputs[0], i,
            (realAt(data, i) - group.mean()) / std::sqrt(group.variance() + p.epsilon) * scale +
                offset);
  }
  return {};
}

// Normalises each channel of each image.
Status normalizeInstances(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  const double gamma = realAt(context.inputs[1], 0);
  const double beta = realAt(context.inputs[2], 0);
  const double epsilon = realAt(context.inputs[3], 0);
  HEARTH_ASSIGN(const bool isNchw, context.scalar<bool>(4));
  const size_t axis = isNchw ? 1 : 3;
  const int64_t count = countOf(data.dimensions);
  if (count == 0) return {};
  std::vector<Moments> moments(size_t{data.dimensions[0]} * data.dimensions[axis]);
  const auto forEachInstance = [&](const auto& visit) {
    forEach(data.dimensions, [&](const Index& index, int64_t place) {
      visit(moments[static_cast<size_t>(index[0] * data.dimensions[axis] + index[axis])], place);
    });
  };
  forEachInstance([&](Moments& instance, int64_t place) { instance.add(realAt(data, place)); });
  forEachInstance(
      [&](Moments& instance, int64_t place) { instance.addSquare(realAt(data, place)); });
  forEachInstance([&](Moments& instance, int64_t place) {
    putReal(
        context.outputs[0], place,
        (realAt(data, place) - instance.mean()) * gamma / std::sqrt(instance.variance() + epsilon) +
            beta);
  });
  return {};
}

}  // namespace hearth::ops::reference
