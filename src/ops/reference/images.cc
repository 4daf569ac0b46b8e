// SPDX-License-Identifier: Apache-2.0
// Pools, resizing by interpolation, and pooling of regions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/bounding_box.h"
#include "ops/pool_2d.h"
#include "ops/quantization.h"
#include "ops/reference/elements.h"
#include "ops/reference/kernels.h"
#include "ops/region_pooling.h"
#include "ops/resize.h"

namespace hearth::ops::reference {
namespace {

// The range of a window, along one side, that lies inside the image.
struct Side {
  int64_t begin;
  int64_t end;

  Side(int64_t position, int64_t stride, int64_t before, int64_t window, int64_t size)
      : begin(std::max<int64_t>(position * stride - before, 0)),
        end(std::min<int64_t>(position * stride - before + window, size)) {}
};

// The mean of stored numbers, rounded half away from 0 whatever the zero point.
int32_t meanOf(int64_t sum, int64_t count) {
  const int64_t half = sum > 0 ? count / 2 : -(count / 2);
  return static_cast<int32_t>((sum + half) / count);
}

// A position along one side of an image: two neighbouring elements, and the weight of the second.
struct Sample {
  int64_t lower;
  int64_t upper;
  double weight;
};

// Interpolates bilinearly, by the weights of both sides.
template <typename At>
double interpolate(const Sample& row, const Sample& column, const At& at) {
  const double above = at(row.lower, column.lower) * (1 - column.weight) +
                       at(row.lower, column.upper) * column.weight;
  const double below = at(row.upper, column.lower) * (1 - column.weight) +
                       at(row.upper, column.upper) * column.weight;
  return above * (1 - row.weight) + below * row.weight;
}

// The elements of a tensor of regions as floats; each is one of the four edges of a region.
std::vector<float> floatsOf(const Tensor& tensor) {
  std::vector<float> values;
  for (int64_t i = 0; i < countOf(tensor.dimensions); ++i)
    values.push_back(static_cast<float>(realAt(tensor, i)));
  return values;
}

}  // namespace

// Padding does not count.
Status pool(const OperationContext& context) {
  HEARTH_ASSIGN(const Pool2dParameters p, parsePool2d(context));
  const OperationType type = context.operation->type;
  const Tensor& data = context.inputs[0];
  const Tensor& output = context.outputs[0];
  const bool areSteps = !isFloat(data.type());
  const QuantizedRange range = quantizedActivationRange(p.activation, *output.operand);
  const ImageLayout layout(p.input, p.isNchw);
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    const int64_t channel = index[p.isNchw ? 1 : 3];
    const Side rows(index[p.isNchw ? 2 : 1], p.window.strideHeight, p.window.padding.top,
                    p.window.filterHeight, p.input.height);
    const Side columns(index[p.isNchw ? 3 : 2], p.window.strideWidth, p.window.padding.left,
                       p.window.filterWidth, p.input.width);
    double sum = 0;
    double greatest = -std::numeric_limits<double>::infinity();
    for (int64_t y = rows.begin; y < rows.end; ++y)
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        const auto at =
            static_cast<int64_t>(layout.offset(static_cast<size_t>(index[0]),
                                               static_cast<size_t>(y), static_cast<size_t>(x)) +
                                 static_cast<size_t>(channel) * layout.channelStride);
        const double value = areSteps ? static_cast<double>(storedAt(data, at)) : realAt(data, at);
        sum += type == OperationType::kL2Pool2d ? value * value : value;
        if (value > greatest || std::isnan(value)) greatest = value;
      }
    const int64_t count = (rows.end - rows.begin) * (columns.end - columns.begin);
    const bool isMaximum = type == OperationType::kMaxPool2d;
    if (areSteps) {
      const int32_t result =
          isMaximum ? static_cast<int32_t>(greatest) : meanOf(static_cast<int64_t>(sum), count);
      return putStored(output, place, std::clamp(result, range.lowest, range.highest));
    }
    const double mean = sum / static_cast<double>(count);
    const double result = isMaximum                          ? greatest
                          : type == OperationType::kL2Pool2d ? std::sqrt(mean)
                                                             : mean;
    putReal(output, place, activate(result, p.activation));
  });
  return {};
}

Status resizeBilinear(const OperationContext& context) {
  HEARTH_ASSIGN(const ResizeParameters p, parseResize(context));
  const Tensor& data = context.inputs[0];
  const Tensor& output = context.outputs[0];
  const ImageShape shape = ImageShape::of(data.dimensions, p.isNchw);
  const ImageLayout layout(shape, p.isNchw);
  const auto sampleAt = [&](int64_t position, int64_t from, int64_t to) -> Sample {
    const double factor = p.alignCorners && to > 1
                              ? static_cast<double>(from - 1) / static_cast<double>(to - 1)
                              : static_cast<double>(from) / static_cast<double>(to);
    const double offset = p.halfPixelCenters ? 0.5 : 0.0;
    // Positions before the first and after the last element are moved onto these.
    const double at = std::clamp((static_cast<double>(position) + offset) * factor - offset, 0.0,
                                 static_cast<double>(from - 1));
    const auto lower = static_cast<int64_t>(at);
    return {lower, std::min(lower + 1, from - 1), at - static_cast<double>(lower)};
  };
  const bool areSteps = !isFloat(data.type());
  forEach(output.dimensions, [&](const Index& index, int64_t place) {
    const Sample row = sampleAt(index[p.isNchw ? 2 : 1], shape.height, p.outputHeight);
    const Sample column = sampleAt(index[p.isNchw ? 3 : 2], shape.width, p.outputWidth);
    const auto channel = static_cast<size_t>(index[p.isNchw ? 1 : 3]);
    const double value = interpolate(row, column, [&](int64_t y, int64_t x) {
      const auto at =
          static_cast<int64_t>(layout.offset(static_cast<size_t>(index[0]), static_cast<size_t>(y),
                                             static_cast<size_t>(x)) +
                               channel * layout.channelStride);
      return areSteps ? static_cast<double>(storedAt(data, at)) : realAt(data, at);
    });
    // Data and output have one quantisation, so steps are interpolated. Halves are rounded up.
    if (areSteps)
      putStored(output, place, static_cast<int32_t>(std::floor(value + 0.5)));
    else
      putReal(output, place, value);
  });
  return {};
}

// Each output is the mean of samples inside its bin of a region.
Status alignRegions(const OperationContext& context) {
  HEARTH_ASSIGN(const RegionParameters p, parseRegionPooling(context, 9));
  HEARTH_ASSIGN(const int32_t heightSamples, context.scalar<int32_t>(7));
  HEARTH_ASSIGN(const int32_t widthSamples, context.scalar<int32_t>(8));
  const Tensor& features = context.inputs[region_pooling::kFeatures];
  const std::vector<float> regions = floatsOf(context.inputs[region_pooling::kRegions]);
  HEARTH_TRY(checkBatchIndices(context, region_pooling::kBatches, p.batches));
  HEARTH_TRY(checkRegions(context, region_pooling::kRegions, regions));
  // Number of samples along a side of a bin: the given number or, if 0, the size of the bin.
  constexpr double kMostSamples = 4096;
  const auto countSamples = [&](double bin, int32_t wanted) -> Result<int64_t> {
    const double count = wanted > 0 ? wanted : std::ceil(bin);
    if (count >= 1 && count <= kMostSamples) return static_cast<int64_t>(count);
    return fail(ErrorCode::kBadData, "{} has a region with bins of {} pixels.", context.describe(),
                bin);
  };
  const auto sampleAt = [](double position, int64_t size) -> Sample {
    if (!(position < static_cast<double>(size - 1))) return {size - 1, size - 1, 0.0};
    const double inside = std::max(position, 0.0);
    const auto lower = static_cast<int64_t>(inside);
    return {lower, lower + 1, inside - static_cast<double>(lower)};
  };
  for (size_t r = 0; r < p.regions; ++r) {
    const auto batch = static_cast<size_t>(
        integerAt(context.inputs[region_pooling::kBatches], static_cast<int64_t>(r)));
    const Box box = boxAt(regions.data() + r * 4);
    const double top = box.top / p.heightRatio;
    const double left = box.left / p.widthRatio;
    const double binHeight = std::max(box.bottom / p.heightRatio - top, 1.0) / p.outputHeight;
    const double binWidth = std::max(box.right / p.widthRatio - left, 1.0) / p.outputWidth;
    HEARTH_ASSIGN(const int64_t rows, countSamples(binHeight, heightSamples));
    HEARTH_ASSIGN(const int64_t columns, countSamples(binWidth, widthSamples));
    forEach({p.outputHeight, p.outputWidth, p.depth}, [&](const Index& index, int64_t) {
      const auto channel = static_cast<size_t>(index[2]);
      double sum = 0;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          const double y =
              top + binHeight * (static_cast<double>(index[0]) +
                                 (static_cast<double>(i) + 0.5) / static_cast<double>(rows));
          const double x =
              left + binWidth * (static_cast<double>(index[1]) +
                                 (static_cast<double>(j) + 0.5) / static_cast<double>(columns));
          sum += interpolate(
              sampleAt(y, p.height), sampleAt(x, p.width), [&](int64_t row, int64_t column) {
                return realAt(features, static_cast<int64_t>(
                                            p.inputAt(batch, static_cast<size_t>(row),
                                                      static_cast<size_t>(column), channel)));
              });
        }
      putReal(context.outputs[0],
              static_cast<int64_t>(p.outputAt(r, static_cast<size_t>(index[0]),
                                              static_cast<size_t>(index[1]), channel)),
              sum / static_cast<double>(rows * columns));
    });
  }
  return {};
}

// Each output is the greatest element inside its bin of a region, 0 for an empty bin. The bounds of
// bins are computed in float32, since they are rounded to whole elements.
Status poolRegions(const OperationContext& context) {
  HEARTH_ASSIGN(const RegionParameters p, parseRegionPooling(context, 7));
  const Tensor& features = context.inputs[region_pooling::kFeatures];
  const std::vector<float> regions = floatsOf(context.inputs[region_pooling::kRegions]);
  HEARTH_TRY(checkBatchIndices(context, region_pooling::kBatches, p.batches));
  HEARTH_TRY(checkRegions(context, region_pooling::kRegions, regions));
  const auto bound = [](float begin, float end, int64_t bin, uint32_t bins, uint32_t size,
                        bool isLower) -> int64_t {
    const float first = std::round(begin);
    const float extent = std::max(std::round(end) - first + 1.0f, 1.0f);
    const float position =
        first + extent / static_cast<float>(bins) * static_cast<float>(isLower ? bin : bin + 1);
    const float whole = isLower ? std::floor(position) : std::ceil(position);
    return whole > 0.0f ? static_cast<int64_t>(std::min(whole, static_cast<float>(size))) : 0;
  };
  for (size_t r = 0; r < p.regions; ++r) {
    const auto batch = static_cast<size_t>(
        integerAt(context.inputs[region_pooling::kBatches], static_cast<int64_t>(r)));
    const Box box = boxAt(regions.data() + r * 4);
    const auto rowBound = [&](int64_t bin, bool isLower) {
      return bound(box.top / p.heightRatio, box.bottom / p.heightRatio, bin, p.outputHeight,
                   p.height, isLower);
    };
    const auto columnBound = [&](int64_t bin, bool isLower) {
      return bound(box.left / p.widthRatio, box.right / p.widthRatio, bin, p.outputWidth, p.width,
                   isLower);
    };
    forEach({p.outputHeight, p.outputWidth, p.depth}, [&](const Index& index, int64_t) {
      const auto channel = static_cast<size_t>(index[2]);
      double greatest = -std::numeric_limits<double>::infinity();
      bool isEmpty = true;
      for (int64_t y = rowBound(index[0], true); y < rowBound(index[0], false); ++y)
        for (int64_t x = columnBound(index[1], true); x < columnBound(index[1], false); ++x) {
          const auto at = static_cast<int64_t>(
              p.inputAt(batch, static_cast<size_t>(y), static_cast<size_t>(x), channel));
          greatest = std::max(greatest, realAt(features, at));
          isEmpty = false;
        }
      putReal(context.outputs[0],
              static_cast<int64_t>(p.outputAt(r, static_cast<size_t>(index[0]),
                                              static_cast<size_t>(index[1]), channel)),
              isEmpty ? 0 : greatest);
    });
  }
  return {};
}

}  // namespace hearth::ops::reference
