// SPDX-License-Identifier: Apache-2.0
// Custom operations of MediaPipe's networks that transform landmarks and pictures by a matrix that
// Landmarks2TransformMatrix made.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "frontends/tflite/translators/custom_options.h"
#include "frontends/tflite/translators/emitter.h"
#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::Dimensions;
using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

// The parts of a transformation that act on points of a plane.
struct PlaneTransformation {
  uint32_t linear;  // [2, 2]
  uint32_t shift;   // [2, 1]
};

Result<PlaneTransformation> planeTransformation(OperatorView& view, size_t index) {
  HEARTH_ASSIGN(const uint32_t matrix, floatInput(view, index));
  const Dimensions& dimensions = view.operand(matrix).dimensions;
  HEARTH_ASSIGN(const uint64_t count, graph::elementCount(view.operand(matrix)));
  if (count != 16)
    return fail(ErrorCode::kUnsupported, "Its matrix is {}, it must have 16 elements.",
                graph::describeDimensions(dimensions));
  Emitter emitter(view);
  HEARTH_ASSIGN(const uint32_t square, emitter.reshape(matrix, {4, 4}));
  PlaneTransformation transformation{};
  HEARTH_ASSIGN(transformation.linear, emitter.slice(square, {0, 0}, {2, 2}));
  HEARTH_ASSIGN(transformation.shift, emitter.slice(square, {0, 3}, {2, 1}));
  return transformation;
}

// TransformLandmarks ---------------------------------------------------------------------------

// Landmarks have two or three coordinates, of which the third stays.
Status translateTransformLandmarks(OperatorView& view, OperationType /*type*/) {
  const int32_t version = operatorVersion(view);
  HEARTH_TRY(requireVersion(version, 2));
  HEARTH_ASSIGN(const uint32_t landmarks, floatInput(view, 0));
  const Dimensions shape = view.operand(landmarks).dimensions;
  if (shape.size() != (version == 2 ? 3 : 4) || shape[0] != 1)
    return fail(ErrorCode::kUnsupported, "Its landmarks have the shape {}.",
                graph::describeDimensions(shape));
  int32_t coordinates = static_cast<int32_t>(std::min<uint32_t>(shape.back(), 4));
  float scale = 1;
  if (version == 1) {
    HEARTH_ASSIGN(const FlexAttributes options, customOptions(view));
    HEARTH_ASSIGN(coordinates, countOption(options, "dimensions"));
    HEARTH_ASSIGN(scale, floatOption(options, "scale"));
  }
  if ((coordinates != 2 && coordinates != 3) ||
      shape.back() % static_cast<uint32_t>(coordinates) != 0)
    return fail(ErrorCode::kUnsupported,
                "Its landmarks {} have {} coordinates, they must have two or three.",
                graph::describeDimensions(shape), coordinates);
  HEARTH_ASSIGN(const uint64_t elements, graph::elementCount(view.operand(landmarks)));
  const auto width = static_cast<uint32_t>(coordinates);
  if (elements > std::numeric_limits<int32_t>::max())
    return fail(ErrorCode::kBadData, "It has {} coordinates.", elements);
  const auto count = static_cast<uint32_t>(elements / width);

  HEARTH_ASSIGN(const PlaneTransformation transformation, planeTransformation(view, 1));
  Emitter emitter(view);
  HEARTH_ASSIGN(uint32_t shift, emitter.reshape(transformation.shift, {1, 2}));
  if (scale != 1) {
    HEARTH_ASSIGN(const uint32_t factor, view.floatTensor(scale, {1, 1}));
    HEARTH_ASSIGN(shift, emitter.arithmetic(OperationType::kMul, shift, factor, {1, 2}));
  }
  HEARTH_ASSIGN(const uint32_t points, emitter.reshape(landmarks, {count, width}));
  HEARTH_ASSIGN(const uint32_t flat, emitter.slice(points, {0, 0}, {count, 2}));
  HEARTH_ASSIGN(const uint32_t turned, emitter.product(flat, transformation.linear, true));
  HEARTH_ASSIGN(uint32_t moved, emitter.arithmetic(OperationType::kAdd, turned, shift, {count, 2}));
  if (width == 3) {
    HEARTH_ASSIGN(const uint32_t depths, emitter.slice(points, {0, 2}, {count, 1}));
    HEARTH_ASSIGN(moved, emitter.join({moved, depths}, 1, {count, 3}));
  }
  const std::vector<int32_t> sizes(shape.begin(), shape.end());
  HEARTH_ASSIGN(const uint32_t outputShape, view.builder().intTensor(sizes));
  HEARTH_ASSIGN(const uint32_t output, outputOfShape(view, 0, shape));
  return view.emit(OperationType::kReshape, {moved, outputShape}, {output});
}

// TransformTensorBilinear ----------------------------------------------------------------------

struct Sampling {
  uint32_t inputHeight, inputWidth, channels;
  uint32_t height, width;
  Dimensions pixels() const { return {1, height, width}; }
  Dimensions pairs() const { return {2, height, width}; }  // x, then y
  Dimensions values() const { return {1, height, width, channels}; }
};

Result<Sampling> readSampling(OperatorView& view, const Dimensions& picture, int32_t version) {
  if (picture.size() != 4 || picture[0] != 1 || picture[1] == 0 || picture[2] == 0 ||
      uint64_t{picture[1]} * picture[2] > std::numeric_limits<int32_t>::max())
    return fail(ErrorCode::kUnsupported, "Its picture has the shape {}, it must be one picture.",
                graph::describeDimensions(picture));
  HEARTH_ASSIGN(const FlexAttributes options, customOptions(view));
  Sampling sampling{};
  sampling.inputHeight = picture[1];
  sampling.inputWidth = picture[2];
  sampling.channels = picture[3];
  if (version == 1) {
    if (options.text("mode").value_or("bilinear") != "bilinear")
      return fail(ErrorCode::kUnsupported, "Its mode \"{}\" is unknown.", *options.text("mode"));
    HEARTH_ASSIGN(const auto sides, sidesOption(options, "output_size", 1));
    sampling.height = static_cast<uint32_t>(sides[0]);
    sampling.width = static_cast<uint32_t>(sides[1]);
  } else {
    HEARTH_ASSIGN(const int32_t height, countOption(options, "output_height"));
    HEARTH_ASSIGN(const int32_t width, countOption(options, "output_width"));
    sampling.height = static_cast<uint32_t>(height);
    sampling.width = static_cast<uint32_t>(width);
  }
  HEARTH_TRY(
      view.builder().model().charge((uint64_t{sampling.height} + sampling.width) * sizeof(float)));
  return sampling;
}

// `count` numbers from `first` on.
std::vector<float> numbersFrom(float first, uint32_t count) {
  std::vector<float> numbers;
  for (uint32_t i = 0; i < count; ++i) numbers.push_back(first + static_cast<float>(i));
  return numbers;
}

// Where the pixels of the result lie in the picture, [2, height, width]. Version 2 transforms the
// middles of pixels, half a pixel from their corners.
Result<uint32_t> placesOf(OperatorView& view, const Sampling& s, int32_t version) {
  const float middle = version == 2 ? 0.5f : 0.0f;
  HEARTH_ASSIGN(const PlaneTransformation transformation, planeTransformation(view, 1));
  Emitter emitter(view);
  HEARTH_ASSIGN(const uint32_t columns,
                floatConstant(view, {1, 1, s.width}, numbersFrom(middle, s.width)));
  HEARTH_ASSIGN(const uint32_t rows,
                floatConstant(view, {1, s.height, 1}, numbersFrom(middle, s.height)));
  HEARTH_ASSIGN(const uint32_t alongRow, emitter.slice(transformation.linear, {0, 0}, {2, 1}));
  HEARTH_ASSIGN(const uint32_t alongColumn, emitter.slice(transformation.linear, {0, 1}, {2, 1}));
  HEARTH_ASSIGN(const uint32_t columnStep, emitter.reshape(alongRow, {2, 1, 1}));
  HEARTH_ASSIGN(const uint32_t rowStep, emitter.reshape(alongColumn, {2, 1, 1}));
  HEARTH_ASSIGN(uint32_t shift, emitter.reshape(transformation.shift, {2, 1, 1}));
  if (middle != 0) {
    HEARTH_ASSIGN(const uint32_t half, view.floatTensor(middle, {1, 1, 1}));
    HEARTH_ASSIGN(shift, emitter.arithmetic(OperationType::kSub, shift, half, {2, 1, 1}));
  }
  HEARTH_ASSIGN(const uint32_t rightward,
                emitter.arithmetic(OperationType::kMul, columnStep, columns, {2, 1, s.width}));
  HEARTH_ASSIGN(const uint32_t downward,
                emitter.arithmetic(OperationType::kMul, rowStep, rows, {2, s.height, 1}));
  HEARTH_ASSIGN(const uint32_t begins,
                emitter.arithmetic(OperationType::kAdd, downward, shift, {2, s.height, 1}));
  return emitter.arithmetic(OperationType::kAdd, rightward, begins, s.pairs());
}

// The pixels of the picture, [height * width, channels], at columns and rows that are floats.
class Picture {
 public:
  Picture(OperatorView& view, const Sampling& sampling) : view_(view), s_(sampling) {}

  Status begin(uint32_t picture) {
    HEARTH_ASSIGN(pixels_,
                  Emitter(view_).reshape(picture, {s_.inputHeight * s_.inputWidth, s_.channels}));
    HEARTH_ASSIGN(width_,
                  intConstant(view_, {1, 1, 1}, std::array{static_cast<int32_t>(s_.inputWidth)}));
    return {};
  }
  // Numbers of columns or, with `isRow`, of the first pixels of rows.
  Result<uint32_t> numbers(uint32_t places, bool isRow) {
    Emitter emitter(view_);
    HEARTH_ASSIGN(const uint32_t chosen,
                  emitter.slice(places, {isRow ? 1U : 0U, 0, 0}, s_.pixels()));
    HEARTH_ASSIGN(const uint32_t whole, view_.emitNew(OperationType::kCast, {chosen}, s_.pixels(),
                                                      OperandType::kTensorInt32));
    if (!isRow) return whole;
    return emitter.arithmetic(OperationType::kMul, whole, width_, s_.pixels());
  }
  Result<uint32_t> at(uint32_t row, uint32_t column) {
    Emitter emitter(view_);
    HEARTH_ASSIGN(const uint32_t indices,
                  emitter.arithmetic(OperationType::kAdd, row, column, s_.pixels()));
    HEARTH_ASSIGN(const uint32_t axis, view_.scalar(0));
    return emitter.plain(OperationType::kGather, {pixels_, axis, indices}, s_.values());
  }

 private:
  OperatorView& view_;
  const Sampling& s_;
  uint32_t pixels_ = 0;
  uint32_t width_ = 0;
};

// A picture whose pixels are taken between those of another; zeros where that has none. Where a
// place is the last of a row or column, its neighbour counts nothing, so that any pixel will do.
Status translateTransformTensor(OperatorView& view, OperationType type) {
  const int32_t version = operatorVersion(view);
  HEARTH_TRY(requireVersion(version, 2));
  HEARTH_ASSIGN(const uint32_t input, floatInput(view, 0));
  HEARTH_ASSIGN(const Sampling s, readSampling(view, view.operand(input).dimensions, version));
  HEARTH_ASSIGN(const uint32_t places, placesOf(view, s, version));
  Emitter emitter(view);

  HEARTH_ASSIGN(const uint32_t zero, view.floatTensor(0.0f, {1, 1, 1}));
  const std::array ends = {static_cast<float>(s.inputWidth - 1),
                           static_cast<float>(s.inputHeight - 1)};
  HEARTH_ASSIGN(const uint32_t last, floatConstant(view, {2, 1, 1}, ends));
  HEARTH_ASSIGN(const uint32_t isBehindFirst,
                view.emitNew(OperationType::kGreaterEqual, {places, zero}, s.pairs(),
                             OperandType::kTensorBool8));
  HEARTH_ASSIGN(const uint32_t isBeforeLast, view.emitNew(OperationType::kLessEqual, {places, last},
                                                          s.pairs(), OperandType::kTensorBool8));
  HEARTH_ASSIGN(const uint32_t isInside, emitter.plain(OperationType::kLogicalAnd,
                                                       {isBehindFirst, isBeforeLast}, s.pairs()));
  HEARTH_ASSIGN(const uint32_t firstAxis, view.builder().intTensor(std::array{0}));
  HEARTH_ASSIGN(const uint32_t keepsRank, view.scalar(true));
  HEARTH_ASSIGN(
      const uint32_t isPixel,
      emitter.plain(OperationType::kReduceAll, {isInside, firstAxis, keepsRank}, s.pixels()));
  HEARTH_ASSIGN(const uint32_t bounded, view.emitNew(type, {isInside, places, zero}, s.pairs()));
  HEARTH_ASSIGN(const uint32_t low, emitter.plain(OperationType::kFloor, {bounded}, s.pairs()));
  HEARTH_ASSIGN(const uint32_t parts,
                emitter.arithmetic(OperationType::kSub, bounded, low, s.pairs()));
  HEARTH_ASSIGN(const uint32_t one, view.floatTensor(1.0f, {1, 1, 1}));
  HEARTH_ASSIGN(const uint32_t next, emitter.arithmetic(OperationType::kAdd, low, one, s.pairs()));
  HEARTH_ASSIGN(const uint32_t high,
                emitter.plain(OperationType::kMinimum, {next, last}, s.pairs()));

  Picture picture(view, s);
  HEARTH_TRY(picture.begin(input));
  HEARTH_ASSIGN(const uint32_t left, picture.numbers(low, false));
  HEARTH_ASSIGN(const uint32_t right, picture.numbers(high, false));
  HEARTH_ASSIGN(const uint32_t top, picture.numbers(low, true));
  HEARTH_ASSIGN(const uint32_t bottom, picture.numbers(high, true));
  const Dimensions single = {1, s.height, s.width, 1};
  HEARTH_ASSIGN(const uint32_t xParts, emitter.slice(parts, {0, 0, 0}, s.pixels()));
  HEARTH_ASSIGN(const uint32_t xPart, emitter.reshape(xParts, single));
  HEARTH_ASSIGN(const uint32_t yParts, emitter.slice(parts, {1, 0, 0}, s.pixels()));
  HEARTH_ASSIGN(const uint32_t yPart, emitter.reshape(yParts, single));
  HEARTH_ASSIGN(const uint32_t topLeft, picture.at(top, left));
  HEARTH_ASSIGN(const uint32_t topRight, picture.at(top, right));
  HEARTH_ASSIGN(const uint32_t upper, emitter.between(topLeft, topRight, xPart, s.values()));
  HEARTH_ASSIGN(const uint32_t bottomLeft, picture.at(bottom, left));
  HEARTH_ASSIGN(const uint32_t bottomRight, picture.at(bottom, right));
  HEARTH_ASSIGN(const uint32_t lower, emitter.between(bottomLeft, bottomRight, xPart, s.values()));
  HEARTH_ASSIGN(const uint32_t values, emitter.between(upper, lower, yPart, s.values()));

  HEARTH_ASSIGN(const uint32_t isTaken, emitter.reshape(isPixel, single));
  HEARTH_ASSIGN(const uint32_t nothing, view.floatTensor(0.0f, {1, 1, 1, 1}));
  HEARTH_ASSIGN(const uint32_t output, outputOfShape(view, 0, s.values()));
  return view.emit(type, {isTaken, values, nothing}, {output});
}

}  // namespace

std::span<const CustomTranslatorEntry> transformationTranslators() {
  static constexpr auto kCode = BuiltinOperator::CUSTOM;
  static constexpr CustomTranslatorEntry kTranslators[] = {
      {"TransformLandmarks", {kCode, translateTransformLandmarks, OperationType::kBatchMatmul}},
      {"TransformTensorBilinear", {kCode, translateTransformTensor, OperationType::kSelectV2}},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
