// SPDX-License-Identifier: Apache-2.0
// Custom operations of MediaPipe's networks.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "frontends/tflite/translators/custom_options.h"
#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

Status appendScalars(OperatorView& view, std::initializer_list<int32_t> values,
                     std::vector<uint32_t>* arguments) {
  for (const int32_t value : values) {
    HEARTH_ASSIGN(const uint32_t scalar, view.scalar(value));
    arguments->push_back(scalar);
  }
  return {};
}

// The codes of the file's structures are NNAPI's: SAME 1, VALID 2.
Status checkPadding(int32_t padding) {
  if (padding == kPaddingSame || padding == kPaddingValid) return {};
  return fail(ErrorCode::kBadData, "Its padding {} is unknown.", padding);
}

// A side of a transposed convolution.
struct TransposedSide {
  uint32_t output = 0;
  int32_t before = 0, behind = 0;  // padding
};

Result<TransposedSide> transposedSide(uint32_t input, uint32_t filter, int32_t stride,
                                      int32_t padding) {
  if (input == 0 || filter == 0 || stride <= 0)
    return fail(ErrorCode::kUnsupported,
                "Its input of {}, its filter of {} and its stride of {} give no size.", input,
                filter, stride);
  const int64_t covered = (int64_t{input} - 1) * stride + filter;
  const int64_t most = int64_t{filter} - (int64_t{input} - 1) % stride - 1;
  const int64_t cut = padding == kPaddingSame ? std::max<int64_t>(most, 0) : 0;
  if (covered - cut > std::numeric_limits<int32_t>::max())
    return fail(ErrorCode::kBadData, "It gives a side of {}.", covered - cut);
  return TransposedSide{static_cast<uint32_t>(covered - cut), static_cast<int32_t>(cut / 2),
                        static_cast<int32_t>(cut - cut / 2)};
}

Status translateTransposeConvBias(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const auto options, integerOptions<3>(view));
  const auto [padding, strideWidth, strideHeight] = options;
  HEARTH_TRY(checkPadding(padding));
  std::vector<uint32_t> arguments;
  for (size_t i = 0; i < 3; ++i) {
    HEARTH_ASSIGN(const uint32_t input, view.input(i));
    arguments.push_back(input);
  }
  const graph::Dimensions input = view.operand(arguments[0]).dimensions;
  const graph::Dimensions filter = view.operand(arguments[1]).dimensions;
  if (input.size() != 4 || filter.size() != 4)
    return fail(ErrorCode::kUnsupported, "Its input is {} and its filter {}.",
                graph::describeDimensions(input), graph::describeDimensions(filter));
  HEARTH_ASSIGN(const TransposedSide height,
                transposedSide(input[1], filter[1], strideHeight, padding));
  HEARTH_ASSIGN(const TransposedSide width,
                transposedSide(input[2], filter[2], strideWidth, padding));
  // With explicit padding the operation names no shape of its output, so the batch may be unknown.
  HEARTH_TRY(appendScalars(view,
                           {width.before, width.behind, height.before, height.behind, strideWidth,
                            strideHeight, kFuseNone},
                           &arguments));
  HEARTH_ASSIGN(const uint32_t layout, view.scalar(false));
  arguments.push_back(layout);
  HEARTH_ASSIGN(const uint32_t output,
                outputOfShape(view, 0, {input[0], height.output, width.output, filter[0]}));
  return view.emit(type, std::move(arguments), {output});
}

// The windows of a pool: [batches, rows, window height, columns, window width, channels] holds
// their elements.
struct Windows {
  graph::Dimensions split;
  graph::Dimensions gathered;  // [batches, rows, columns, channels, elements of a window]
  graph::Dimensions pooled;    // [batches, rows, columns, channels]
  graph::Dimensions image;     // that they cover where they lie side by side
};

Result<Windows> windowsOf(const graph::Dimensions& pooled, int32_t height, int32_t width) {
  if (pooled.size() != 4 || std::ranges::any_of(pooled, [](uint32_t size) { return size == 0; }))
    return fail(ErrorCode::kUnsupported, "Its image has the shape {}, it must be known.",
                graph::describeDimensions(pooled));
  if (height < 1 || width < 1 ||
      int64_t{height} * pooled[1] > std::numeric_limits<int32_t>::max() ||
      int64_t{width} * pooled[2] > std::numeric_limits<int32_t>::max() ||
      int64_t{height} * width > std::numeric_limits<int32_t>::max())
    return fail(ErrorCode::kBadData, "Its windows are of {} by {}.", height, width);
  const auto windowHeight = static_cast<uint32_t>(height);
  const auto windowWidth = static_cast<uint32_t>(width);
  return Windows{{pooled[0], pooled[1], windowHeight, pooled[2], windowWidth, pooled[3]},
                 {pooled[0], pooled[1], pooled[2], pooled[3], windowHeight * windowWidth},
                 pooled,
                 {pooled[0], pooled[1] * windowHeight, pooled[2] * windowWidth, pooled[3]}};
}

// The windows of a pool along one side of its image.
struct WindowLine {
  uint32_t image = 0;
  uint32_t window = 0;
  uint32_t stride = 0;
  uint32_t count = 0;
  uint32_t before = 0;  // elements that are added to the image
  uint32_t after = 0;

  bool isSideBySide() const { return stride == window && count * window == image; }
};

Result<WindowLine> windowLine(uint32_t image, int32_t window, int32_t stride, int32_t padding) {
  if (image == 0 || image > static_cast<uint32_t>(std::numeric_limits<int32_t>::max()) ||
      window < 1 || stride < 1)
    return fail(ErrorCode::kUnsupported, "Its windows of {} are {} apart in an image of {}.",
                window, stride, image);
  const int64_t free = padding == kPaddingSame ? int64_t{image} - 1 : int64_t{image} - window;
  const int64_t count = free < 0 ? 0 : free / stride + 1;
  if (count == 0)
    return fail(ErrorCode::kBadData, "Its windows of {} do not fit into its image of {}.", window,
                image);
  const int64_t added = std::max<int64_t>((count - 1) * stride + window - int64_t{image}, 0);
  if (added + image > std::numeric_limits<int32_t>::max())
    return fail(ErrorCode::kBadData, "Its windows are of {}.", window);
  return WindowLine{image,
                    static_cast<uint32_t>(window),
                    static_cast<uint32_t>(stride),
                    static_cast<uint32_t>(count),
                    static_cast<uint32_t>(added / 2),
                    static_cast<uint32_t>(added - added / 2)};
}

Result<uint32_t> shapeOf(OperatorView& view, const graph::Dimensions& dimensions) {
  const std::vector<int32_t> sizes(dimensions.begin(), dimensions.end());
  return view.builder().intTensor(sizes);
}

// The elements of windows that lie side by side, with the shape `split`.
Result<uint32_t> splitWindows(OperatorView& view, uint32_t image, const Windows& windows) {
  HEARTH_ASSIGN(const uint32_t splitShape, shapeOf(view, windows.split));
  return view.emitNew(OperationType::kReshape, {image, splitShape}, windows.split);
}

// The same along `axis`, where the windows of the line become two dimensions.
Result<uint32_t> takeWindows(OperatorView& view, uint32_t image, int32_t axis,
                             const WindowLine& line) {
  HEARTH_TRY(view.builder().model().charge(uint64_t{line.count} * line.window * sizeof(int32_t)));
  std::vector<int32_t> places;
  for (uint32_t i = 0; i < line.count; ++i)
    for (uint32_t j = 0; j < line.window; ++j)
      places.push_back(static_cast<int32_t>(i * line.stride + j));
  HEARTH_ASSIGN(const uint32_t indices, intConstant(view, {line.count, line.window}, places));
  HEARTH_ASSIGN(const uint32_t axisOperand, view.scalar(axis));
  graph::Dimensions dimensions = view.operand(image).dimensions;
  dimensions[static_cast<size_t>(axis)] = line.count;
  dimensions.insert(dimensions.begin() + axis + 1, line.window);
  return view.emitNew(OperationType::kGather, {image, axisOperand, indices}, std::move(dimensions));
}

// The same of windows that overlap, leave out elements, or reach beyond the image, where the least
// of all numbers lies.
Result<uint32_t> splitAnyWindows(OperatorView& view, uint32_t image, const WindowLine& rows,
                                 const WindowLine& columns) {
  graph::Dimensions dimensions = view.operand(image).dimensions;
  if (rows.before + rows.after + columns.before + columns.after > 0) {
    const std::array paddings = {0,
                                 0,
                                 static_cast<int32_t>(rows.before),
                                 static_cast<int32_t>(rows.after),
                                 static_cast<int32_t>(columns.before),
                                 static_cast<int32_t>(columns.after),
                                 0,
                                 0};
    HEARTH_ASSIGN(const uint32_t paddingOperand, intConstant(view, {4, 2}, paddings));
    HEARTH_ASSIGN(const uint32_t least, view.scalar(std::numeric_limits<float>::lowest()));
    dimensions[1] += rows.before + rows.after;
    dimensions[2] += columns.before + columns.after;
    HEARTH_ASSIGN(image,
                  view.emitNew(OperationType::kPadV2, {image, paddingOperand, least}, dimensions));
  }
  HEARTH_ASSIGN(const uint32_t split, takeWindows(view, image, 1, rows));
  return takeWindows(view, split, 3, columns);
}

// The elements of each window, in its last dimension.
Result<uint32_t> gatherWindows(OperatorView& view, uint32_t split, const Windows& windows) {
  HEARTH_ASSIGN(const uint32_t order, view.builder().intTensor(std::array{0, 1, 3, 5, 2, 4}));
  const graph::Dimensions& s = windows.split;
  HEARTH_ASSIGN(const uint32_t turned, view.emitNew(OperationType::kTranspose, {split, order},
                                                    {s[0], s[1], s[3], s[5], s[2], s[4]}));
  HEARTH_ASSIGN(const uint32_t gatheredShape, shapeOf(view, windows.gathered));
  return view.emitNew(OperationType::kReshape, {turned, gatheredShape}, windows.gathered);
}

// The operation of a fused activation, which has TFLite's number here.
Result<std::optional<OperationType>> activationOf(int32_t number) {
  switch (number) {
    case 0:
      return std::nullopt;
    case 1:
      return OperationType::kRelu;
    case 2:
      return OperationType::kRelu1;
    case 3:
      return OperationType::kRelu6;
    default:
      return fail(ErrorCode::kUnsupported, "Its fused activation {} is not supported.", number);
  }
}

// Becomes a maximum and a place along the elements of each window. A place is 0.1 larger than it
// is, so that what reads it may cut it to a whole number.
Status translateMaxPoolArgmax(OperatorView& view, OperationType type) {
  constexpr float kRoundsDown = 0.1f;
  HEARTH_ASSIGN(const auto options, integerOptions<6>(view));
  const auto [padding, strideWidth, strideHeight, width, height, activationNumber] = options;
  HEARTH_TRY(checkPadding(padding));
  HEARTH_ASSIGN(const auto activation, activationOf(activationNumber));
  HEARTH_ASSIGN(const uint32_t input, floatInput(view, 0));
  graph::Dimensions pooled = view.operand(input).dimensions;
  if (pooled.size() != 4)
    return fail(ErrorCode::kUnsupported, "Its image has the shape {}.",
                graph::describeDimensions(pooled));
  HEARTH_ASSIGN(const WindowLine rows, windowLine(pooled[1], height, strideHeight, padding));
  HEARTH_ASSIGN(const WindowLine columns, windowLine(pooled[2], width, strideWidth, padding));
  pooled[1] = rows.count;
  pooled[2] = columns.count;
  HEARTH_ASSIGN(const Windows windows, windowsOf(pooled, height, width));
  HEARTH_ASSIGN(const uint32_t split, rows.isSideBySide() && columns.isSideBySide()
                                          ? splitWindows(view, input, windows)
                                          : splitAnyWindows(view, input, rows, columns));
  HEARTH_ASSIGN(const uint32_t elements, gatherWindows(view, split, windows));
  HEARTH_ASSIGN(const uint32_t last, view.builder().intTensor(std::array{4}));
  HEARTH_ASSIGN(const uint32_t keepsRank, view.scalar(false));
  HEARTH_ASSIGN(const uint32_t maxima, outputOfShape(view, 0, pooled));
  if (activation) {
    HEARTH_ASSIGN(const uint32_t largest, view.emitNew(type, {elements, last, keepsRank}, pooled));
    HEARTH_TRY(view.emit(*activation, {largest}, {maxima}));
  } else {
    HEARTH_TRY(view.emit(type, {elements, last, keepsRank}, {maxima}));
  }
  HEARTH_ASSIGN(const uint32_t axis, view.scalar(4));
  HEARTH_ASSIGN(const uint32_t found, view.emitNew(OperationType::kArgmax, {elements, axis}, pooled,
                                                   OperandType::kTensorInt32));
  HEARTH_ASSIGN(const uint32_t whole, view.emitNew(OperationType::kCast, {found}, pooled));
  HEARTH_ASSIGN(const uint32_t more, view.floatTensor(kRoundsDown));
  HEARTH_ASSIGN(const uint32_t none, view.scalar(kFuseNone));
  HEARTH_ASSIGN(const uint32_t places, outputOfShape(view, 1, pooled));
  return view.emit(OperationType::kAdd, {whole, more, none}, {places});
}

// One window over each element of a side of an unpooled image.
struct Cover {
  std::vector<int32_t> windows;  // for each element of the side
  std::vector<int32_t> places;   // of the element in its window; -1 where it lies in none
};

// The windows of a side, `count` of them, in their order: as many covers as windows lie over an
// element at most. MediaPipe gives the image
// `count * window` elements whatever the stride is, and cuts off as much before the first window as
// behind the last one.
Result<std::vector<Cover>> coversOf(uint32_t count, int32_t window, int32_t stride) {
  constexpr int64_t kMostCovers = 16;
  if (stride < 1)
    return fail(ErrorCode::kBadData, "Its windows of {} are {} apart.", window, stride);
  const int64_t most = (int64_t{window} + stride - 1) / stride;
  if (most > kMostCovers)
    return fail(ErrorCode::kUnsupported,
                "Its windows of {} are {} apart, so that {} lie over one element; {} are the most.",
                window, stride, most, kMostCovers);
  const int64_t side = int64_t{count} * window;
  const int64_t before =
      std::max<int64_t>((count - int64_t{1}) * (int64_t{stride} - window) / 2, 0);
  std::vector<Cover> covers;
  for (int64_t later = most - 1; later >= 0; --later) {
    Cover cover;
    for (int64_t i = 0; i < side; ++i) {
      const int64_t number = (i + before) / stride - later;
      const int64_t place = i + before - number * stride;
      const bool isInside = number >= 0 && number < count && place < window;
      cover.windows.push_back(isInside ? static_cast<int32_t>(number) : 0);
      cover.places.push_back(isInside ? static_cast<int32_t>(place) : -1);
    }
    covers.push_back(std::move(cover));
  }
  return covers;
}

// The elements of `image` at these places of an axis.
Result<uint32_t> takeAlong(OperatorView& view, uint32_t image, int32_t axis,
                           std::span<const int32_t> places, OperandType type) {
  graph::Dimensions dimensions = view.operand(image).dimensions;
  dimensions[static_cast<size_t>(axis)] = static_cast<uint32_t>(places.size());
  HEARTH_ASSIGN(const uint32_t axisOperand, view.scalar(axis));
  HEARTH_ASSIGN(const uint32_t indices, view.builder().intTensor(places));
  return view.emitNew(OperationType::kGather, {image, axisOperand, indices}, std::move(dimensions),
                      type);
}

// Unpools windows that overlap or leave out elements. Of all windows over an element whose place is
// this element, the last one in the order of rows counts.
Status unpoolAnyWindows(OperatorView& view, OperationType select, const Windows& windows,
                        const std::vector<Cover>& rows, const std::vector<Cover>& columns,
                        int32_t windowWidth) {
  const uint64_t elements = uint64_t{windows.image[1]} * windows.image[2];
  HEARTH_TRY(
      view.builder().model().charge(elements * rows.size() * columns.size() * sizeof(int32_t)));
  HEARTH_ASSIGN(const uint32_t maxima, view.input(0));
  HEARTH_ASSIGN(const uint32_t places, view.input(1));
  HEARTH_ASSIGN(const uint32_t whole, view.emitNew(OperationType::kCast, {places}, windows.pooled,
                                                   OperandType::kTensorInt32));
  HEARTH_ASSIGN(uint32_t image, view.floatTensor(0.0f));
  for (const Cover& row : rows) {
    HEARTH_ASSIGN(const uint32_t valueRows,
                  takeAlong(view, maxima, 1, row.windows, OperandType::kTensorFloat32));
    HEARTH_ASSIGN(const uint32_t placeRows,
                  takeAlong(view, whole, 1, row.windows, OperandType::kTensorInt32));
    for (const Cover& column : columns) {
      HEARTH_ASSIGN(const uint32_t values,
                    takeAlong(view, valueRows, 2, column.windows, OperandType::kTensorFloat32));
      HEARTH_ASSIGN(const uint32_t wanted,
                    takeAlong(view, placeRows, 2, column.windows, OperandType::kTensorInt32));
      std::vector<int32_t> here;
      here.reserve(elements);
      for (const int32_t y : row.places)
        for (const int32_t x : column.places)
          here.push_back(y < 0 || x < 0 ? -1 : y * windowWidth + x);
      HEARTH_ASSIGN(const uint32_t numbers,
                    intConstant(view, {1, windows.image[1], windows.image[2], 1}, here));
      HEARTH_ASSIGN(const uint32_t isHere, view.emitNew(OperationType::kEqual, {wanted, numbers},
                                                        windows.image, OperandType::kTensorBool8));
      if (&row == &rows.back() && &column == &columns.back()) {
        HEARTH_ASSIGN(const uint32_t output, outputOfShape(view, 0, windows.image));
        return view.emit(select, {isHere, values, image}, {output});
      }
      HEARTH_ASSIGN(image, view.emitNew(select, {isHere, values, image}, windows.image));
    }
  }
  return {};
}

// Each element of a window is its maximum where the place is the element's, and 0 elsewhere.
Status translateMaxUnpool(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const auto options, integerOptions<5>(view));
  const auto [padding, strideWidth, strideHeight, width, height] = options;
  HEARTH_TRY(checkPadding(padding));
  HEARTH_ASSIGN(const uint32_t maxima, view.input(0));
  HEARTH_ASSIGN(const uint32_t places, view.input(1));
  HEARTH_ASSIGN(const Windows windows, windowsOf(view.operand(maxima).dimensions, height, width));
  if (strideWidth != width || strideHeight != height) {
    const uint64_t sides = uint64_t{windows.image[1]} + windows.image[2];
    HEARTH_TRY(view.builder().model().charge(sides * sizeof(int32_t)));
    HEARTH_ASSIGN(const std::vector<Cover> rows, coversOf(windows.pooled[1], height, strideHeight));
    HEARTH_ASSIGN(const std::vector<Cover> columns,
                  coversOf(windows.pooled[2], width, strideWidth));
    return unpoolAnyWindows(view, type, windows, rows, columns, width);
  }
  graph::Dimensions single = windows.pooled;
  single.push_back(1);
  HEARTH_ASSIGN(const uint32_t singleShape, shapeOf(view, single));
  HEARTH_ASSIGN(const uint32_t values,
                view.emitNew(OperationType::kReshape, {maxima, singleShape}, single));
  HEARTH_ASSIGN(const uint32_t whole, view.emitNew(OperationType::kCast, {places}, windows.pooled,
                                                   OperandType::kTensorInt32));
  HEARTH_ASSIGN(const uint32_t wanted, view.emitNew(OperationType::kReshape, {whole, singleShape},
                                                    single, OperandType::kTensorInt32));
  HEARTH_TRY(view.builder().model().charge(uint64_t{windows.gathered[4]} * sizeof(int32_t)));
  std::vector<int32_t> all(windows.gathered[4]);
  std::iota(all.begin(), all.end(), 0);
  HEARTH_ASSIGN(const uint32_t numbers, view.builder().intTensor(all));
  HEARTH_ASSIGN(const uint32_t isHere, view.emitNew(OperationType::kEqual, {wanted, numbers},
                                                    windows.gathered, OperandType::kTensorBool8));
  HEARTH_ASSIGN(const uint32_t zero, view.floatTensor(0.0f));
  HEARTH_ASSIGN(const uint32_t elements,
                view.emitNew(type, {isHere, values, zero}, windows.gathered));
  const graph::Dimensions& s = windows.split;
  const graph::Dimensions turned = {s[0], s[1], s[3], s[5], s[2], s[4]};
  HEARTH_ASSIGN(const uint32_t turnedShape, shapeOf(view, turned));
  HEARTH_ASSIGN(const uint32_t split,
                view.emitNew(OperationType::kReshape, {elements, turnedShape}, turned));
  HEARTH_ASSIGN(const uint32_t order, view.builder().intTensor(std::array{0, 1, 4, 2, 5, 3}));
  HEARTH_ASSIGN(const uint32_t lines,
                view.emitNew(OperationType::kTranspose, {split, order}, windows.split));
  HEARTH_ASSIGN(const uint32_t imageShape, shapeOf(view, windows.image));
  HEARTH_ASSIGN(const uint32_t output, outputOfShape(view, 0, windows.image));
  return view.emit(OperationType::kReshape, {lines, imageShape}, {output});
}

}  // namespace

std::span<const CustomTranslatorEntry> mediapipeTranslators() {
  static constexpr auto kCode = BuiltinOperator::CUSTOM;
  static constexpr CustomTranslatorEntry kTranslators[] = {
      {"Convolution2DTransposeBias",
       {kCode, translateTransposeConvBias, OperationType::kTransposeConv2d}},
      {"MaxPoolingWithArgmax2D", {kCode, translateMaxPoolArgmax, OperationType::kReduceMax}},
      {"MaxUnpooling2D", {kCode, translateMaxUnpool, OperationType::kSelectV2}},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
