// SPDX-License-Identifier: Apache-2.0
#include "ops/testing/plain_operations.h"
#include "ops/testing/plain_tensor.h"

namespace hearth::ops::plain {
namespace {

void reduce(const OperationContext& context) {
  const OperationType type = context.operation->type;
  const Tensor& data = context.inputs[0];
  const Tensor& output = context.outputs[0];
  std::vector<bool> isReduced(data.rank(), false);
  for (const int64_t axis : numbersAt(context, 1)) isReduced[axisOf(axis, data.rank())] = true;
  // Whether the dimensions that are gone are kept as 1 does not change the order.
  Dimensions kept;
  for (size_t i = 0; i < data.rank(); ++i)
    if (!isReduced[i]) kept.push_back(data.dimensions[i]);
  const auto count = static_cast<size_t>(countOf(kept));
  std::vector<double> sums(count, 0.0);
  std::vector<double> greatest(count, -std::numeric_limits<double>::infinity());
  forEach(data.dimensions, [&](const Index& index, int64_t place) {
    Index at;
    for (size_t i = 0; i < index.size(); ++i)
      if (!isReduced[i]) at.push_back(index[i]);
    const auto result = static_cast<size_t>(placeOf(at, kept));
    sums[result] += realAt(data, place);
    greatest[result] = std::max(greatest[result], realAt(data, place));
  });
  const double size = static_cast<double>(countOf(data.dimensions)) / static_cast<double>(count);
  for (size_t i = 0; i < count; ++i)
    putReal(output, static_cast<int64_t>(i),
            type == OperationType::kReduceMax ? greatest[i]
            : type == OperationType::kMean    ? sums[i] / size
                                              : sums[i]);
}

// Calls visit(places) with the elements of each row along an axis.
template <typename Visit>
void forEachRow(const Dimensions& dimensions, size_t axis, const Visit& visit) {
  forEach(dimensions, [&](const Index& index, int64_t) {
    if (index[axis] != 0) return;
    std::vector<int64_t> places;
    Index at = index;
    for (at[axis] = 0; at[axis] < dimensions[axis]; ++at[axis])
      places.push_back(placeOf(at, dimensions));
    visit(places);
  });
}

void findExtremes(const OperationContext& context, bool isGreatest) {
  const Tensor& data = context.inputs[0];
  int64_t row = 0;
  forEachRow(data.dimensions, axisOf(scalarAt(context, 1), data.rank()),
             [&](const std::vector<int64_t>& places) {
               size_t best = 0;
               for (size_t i = 1; i < places.size(); ++i) {
                 const double value = realAt(data, places[i]);
                 const double first = realAt(data, places[best]);
                 if (isGreatest ? value > first : value < first) best = i;
               }
               putInteger(context.outputs[0], row++, static_cast<int64_t>(best));
             });
}

void softmax(const OperationContext& context, bool isLog) {
  const Tensor& data = context.inputs[0];
  const double beta = realAt(context.inputs[1], 0);
  const int64_t axis = context.inputs.size() > 2 ? scalarAt(context, 2) : -1;
  forEachRow(data.dimensions, axisOf(axis, data.rank()), [&](const std::vector<int64_t>& places) {
    // A common summand of the exponents cancels; without this one they would be infinite.
    double greatest = realAt(data, places[0]);
    for (const int64_t place : places) greatest = std::max(greatest, realAt(data, place));
    const auto exponentAt = [&](int64_t place) {
      return beta * (realAt(data, place) - greatest);
    };
    double sum = 0;
    for (const int64_t place : places) sum += std::exp(exponentAt(place));
    for (const int64_t place : places)
      putReal(context.outputs[0], place,
              isLog ? exponentAt(place) - std::log(sum) : std::exp(exponentAt(place)) / sum);
  });
}

void normalizeLength(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  forEachRow(data.dimensions, data.rank() - 1, [&](const std::vector<int64_t>& places) {
    double squares = 0;
    for (const int64_t place : places) squares += realAt(data, place) * realAt(data, place);
    for (const int64_t place : places)
      putReal(context.outputs[0], place, realAt(data, place) / std::max(std::sqrt(squares), 1e-6));
  });
}

void normalizeMeanSquare(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  const double epsilon = realAt(context.inputs[2], 0);
  forEachRow(data.dimensions, data.rank() - 1, [&](const std::vector<int64_t>& places) {
    double squares = 0;
    for (const int64_t place : places) squares += realAt(data, place) * realAt(data, place);
    const double root = std::sqrt(squares / static_cast<double>(places.size()) + epsilon);
    for (size_t i = 0; i < places.size(); ++i)
      putReal(context.outputs[0], places[i],
              realAt(data, places[i]) / root * realAt(context.inputs[1], static_cast<int64_t>(i)));
  });
}

// Of each batch element, groups of neighbouring channels.
void normalizeGroups(const OperationContext& context) {
  const Tensor& data = context.inputs[0];
  const double epsilon = realAt(context.inputs[3], 0);
  const size_t axis = axisOf(scalarAt(context, 5), data.rank());
  const int64_t size = data.dimensions[axis] / scalarAt(context, 4);
  const auto forGroup = [&](int64_t batch, int64_t group, const auto& visit) {
    forEach(data.dimensions, [&](const Index& index, int64_t place) {
      if (index[0] == batch && index[axis] / size == group) visit(index[axis], place);
    });
  };
  for (int64_t batch = 0; batch < data.dimensions[0]; ++batch)
    for (int64_t group = 0; group < scalarAt(context, 4); ++group) {
      double sum = 0;
      double count = 0;
      forGroup(batch, group, [&](int64_t, int64_t place) {
        sum += realAt(data, place);
        ++count;
      });
      double squares = 0;
      forGroup(batch, group, [&](int64_t, int64_t place) {
        squares += std::pow(realAt(data, place) - sum / count, 2);
      });
      forGroup(batch, group, [&](int64_t channel, int64_t place) {
        putReal(context.outputs[0], place,
                (realAt(data, place) - sum / count) / std::sqrt(squares / count + epsilon) *
                        realAt(context.inputs[1], channel) +
                    realAt(context.inputs[2], channel));
      });
    }
}

}  // namespace

bool computeRows(const OperationContext& context) {
  switch (context.operation->type) {
    case OperationType::kMean:
    case OperationType::kReduceMax:
    case OperationType::kReduceSum:
      reduce(context);
      return true;
    case OperationType::kArgmax:
    case OperationType::kArgmin:
      findExtremes(context, context.operation->type == OperationType::kArgmax);
      return true;
    case OperationType::kSoftmax:
    case OperationType::kLogSoftmax:
      softmax(context, context.operation->type == OperationType::kLogSoftmax);
      return true;
    case OperationType::kL2Normalization:
      normalizeLength(context);
      return true;
    case OperationType::kRmsNorm:
      normalizeMeanSquare(context);
      return true;
    case OperationType::kGroupNorm:
      normalizeGroups(context);
      return true;
    default:
      return false;
  }
}

}  // namespace hearth::ops::plain
