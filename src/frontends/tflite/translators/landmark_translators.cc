// SPDX-License-Identifier: Apache-2.0
// Landmarks2TransformMatrix of MediaPipe's networks: the transformation from the upright picture of
// some landmarks to the picture that they were found in. It is a matrix of four by four, of which
// the first two rows say where points of a plane come to lie.
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
using graph::OperationType;
using schema::BuiltinOperator;

// The box around some landmarks, turned so that two landmarks lie as they should, and the picture
// that it becomes. Pairs are of x and y.
struct Box {
  std::vector<int32_t> landmarks;
  int32_t left = 0;
  int32_t right = 0;
  float angle = 0;  // of the line from the left to the right landmark in the turned box
  std::array<float, 2> sizeFactors{};  // from the box's sides to steps of the picture's pixels
  std::array<float, 2> toMiddle{};     // from the first pixel, negative
  std::array<float, 2> outputFactors{1, 1};  // of what the matrix gives
  std::array<float, 2> centreFactors{1, 1};  // of the middle of the box
  bool hasOutputFactors = false;
};

Result<int32_t> landmarkOption(const FlexAttributes& options, const char* name, uint32_t count) {
  const double value = options.number(name).value_or(-1);
  if (value < 0 || value >= count)
    return fail(ErrorCode::kBadData, "Its option \"{}\" is {}, it must be one of {} landmarks.",
                name, value, count);
  return static_cast<int32_t>(value);
}

Result<std::vector<int32_t>> landmarkList(const FlexAttributes& options, const char* name,
                                          uint32_t count) {
  const std::vector<double> values = options.numbers(name).value_or(std::vector<double>());
  if (values.empty())
    return fail(ErrorCode::kBadData, "Its options lack the landmarks \"{}\".", name);
  std::vector<int32_t> landmarks;
  for (const double value : values) {
    if (!(value >= 0 && value < count))
      return fail(ErrorCode::kBadData, "Its option \"{}\" has landmark {} of {}.", name, value,
                  count);
    landmarks.push_back(static_cast<int32_t>(value));
  }
  return landmarks;
}

Result<Box> readBox2(const FlexAttributes& options, uint32_t count) {
  Box box;
  HEARTH_ASSIGN(box.landmarks, landmarkList(options, "subset_idxs", count));
  HEARTH_ASSIGN(box.left, landmarkOption(options, "left_rotation_idx", count));
  HEARTH_ASSIGN(box.right, landmarkOption(options, "right_rotation_idx", count));
  box.angle = static_cast<float>(options.number("target_rotation_radians").value_or(0));
  HEARTH_ASSIGN(const int32_t width, countOption(options, "output_width"));
  HEARTH_ASSIGN(const int32_t height, countOption(options, "output_height"));
  HEARTH_ASSIGN(const float scaleX, floatOption(options, "scale_x"));
  HEARTH_ASSIGN(const float scaleY, floatOption(options, "scale_y"));
  if (!(scaleX > 0 && scaleY > 0))
    return fail(ErrorCode::kBadData, "Its scales are {} and {}, they must be above 0.", scaleX,
                scaleY);
  box.sizeFactors = {scaleX / static_cast<float>(width), scaleY / static_cast<float>(height)};
  box.toMiddle = {-0.5f * static_cast<float>(width), -0.5f * static_cast<float>(height)};
  return box;
}

// Version 1 counts from the middles of the first pixels to those of the last, and landmarks lie in
// [0, landmarks_range].
Result<Box> readBox1(const FlexAttributes& options, uint32_t count) {
  Box box;
  HEARTH_ASSIGN(box.landmarks, landmarkList(options, "subset", count));
  HEARTH_ASSIGN(box.left, landmarkOption(options, "left_rotation_idx", count));
  HEARTH_ASSIGN(box.right, landmarkOption(options, "right_rotation_idx", count));
  HEARTH_ASSIGN(const int32_t dimensions, countOption(options, "dimensions"));
  HEARTH_ASSIGN(const int32_t range, countOption(options, "landmarks_range"));
  HEARTH_ASSIGN(const float multiplier, floatOption(options, "bbox_size_multiplier"));
  if (dimensions != 3 || !(std::abs(multiplier) > 0))
    return fail(ErrorCode::kBadData,
                "Its landmarks have {} dimensions and its box is multiplied by {}.", dimensions,
                multiplier);
  HEARTH_ASSIGN(const auto input, sidesOption(options, "input_hw", 1));
  HEARTH_ASSIGN(const auto output, sidesOption(options, "output_hw", 2));
  box.hasOutputFactors = true;
  for (size_t i = 0; i < 2; ++i) {
    const float inputSteps = input[1 - i] - 1;
    const float outputSteps = output[1 - i] - 1;
    box.sizeFactors[i] = multiplier / static_cast<float>(range) * 2 / outputSteps;
    box.toMiddle[i] = -0.5f * outputSteps;
    box.outputFactors[i] = 0.5f * inputSteps;
    box.centreFactors[i] = inputSteps / static_cast<float>(range);
  }
  return box;
}

// The rotation by minus `radians`, [2, 2]: rows that are multiplied by it are turned by `radians`.
Result<uint32_t> rotation(Emitter& emitter, uint32_t radians) {
  HEARTH_ASSIGN(const uint32_t cosine, emitter.plain(OperationType::kCos, {radians}, {1, 1}));
  HEARTH_ASSIGN(const uint32_t sine, emitter.plain(OperationType::kSin, {radians}, {1, 1}));
  HEARTH_ASSIGN(const uint32_t minus, emitter.plain(OperationType::kNeg, {sine}, {1, 1}));
  HEARTH_ASSIGN(const uint32_t first, emitter.join({cosine, sine}, 1, {1, 2}));
  HEARTH_ASSIGN(const uint32_t second, emitter.join({minus, cosine}, 1, {1, 2}));
  return emitter.join({first, second}, 0, {2, 2});
}

// By how much the box is turned, [1, 1]. Version 1 knows only lines from left to right.
Result<uint32_t> turnOf(OperatorView& view, const Box& box, uint32_t points, int32_t version) {
  Emitter emitter(view);
  HEARTH_ASSIGN(const uint32_t left, emitter.rows(points, std::array{box.left}));
  HEARTH_ASSIGN(const uint32_t right, emitter.rows(points, std::array{box.right}));
  HEARTH_ASSIGN(const uint32_t line, emitter.arithmetic(OperationType::kSub, right, left, {1, 3}));
  HEARTH_ASSIGN(uint32_t x, emitter.slice(line, {0, 0}, {1, 1}));
  HEARTH_ASSIGN(uint32_t y, emitter.slice(line, {0, 1}, {1, 1}));
  if (version == 1) {
    HEARTH_ASSIGN(y, emitter.arithmetic(OperationType::kDiv, y, x, {1, 1}));
    HEARTH_ASSIGN(x, view.floatTensor(1.0f, {1, 1}));
  }
  HEARTH_ASSIGN(const uint32_t found, emitter.plain(OperationType::kAtan2, {y, x}, {1, 1}));
  HEARTH_ASSIGN(const uint32_t wanted, view.floatTensor(box.angle, {1, 1}));
  return emitter.arithmetic(OperationType::kSub, wanted, found, {1, 1});
}

// Where the pixels of the upright picture lie among the landmarks: the middle of the box, and from
// there in steps along its sides.
Status translateLandmarksToMatrix(OperatorView& view, OperationType /*type*/) {
  const int32_t version = operatorVersion(view);
  HEARTH_TRY(requireVersion(version, 2));
  HEARTH_ASSIGN(const uint32_t landmarks, floatInput(view, 0));
  const Dimensions shape = view.operand(landmarks).dimensions;
  const bool isList = version == 2 && shape.size() == 3 && shape[0] == 1 && shape[2] == 3;
  const bool isLine = version == 1 && shape.size() == 4 && shape[0] == 1 && shape[1] == 1 &&
                      shape[2] == 1 && shape[3] % 3 == 0;
  if (!isList && !isLine)
    return fail(ErrorCode::kUnsupported, "Its landmarks have the shape {}, it must be {}.",
                graph::describeDimensions(shape), version == 2 ? "[1,n,3]" : "[1,1,1,3n]");
  const uint32_t count = isList ? shape[1] : shape[3] / 3;
  HEARTH_ASSIGN(const FlexAttributes options, customOptions(view));
  HEARTH_ASSIGN(const Box box, version == 2 ? readBox2(options, count) : readBox1(options, count));

  Emitter emitter(view);
  HEARTH_ASSIGN(const uint32_t points, emitter.reshape(landmarks, {count, 3}));
  HEARTH_ASSIGN(const uint32_t radians, turnOf(view, box, points, version));
  HEARTH_ASSIGN(const uint32_t turn, rotation(emitter, radians));
  HEARTH_ASSIGN(const uint32_t chosen, emitter.rows(points, box.landmarks));
  const auto chosenCount = static_cast<uint32_t>(box.landmarks.size());
  HEARTH_ASSIGN(const uint32_t flat, emitter.slice(chosen, {0, 0}, {chosenCount, 2}));
  HEARTH_ASSIGN(const uint32_t turned, emitter.product(flat, turn, false));
  HEARTH_ASSIGN(const uint32_t most, emitter.extreme(OperationType::kReduceMax, turned));
  HEARTH_ASSIGN(const uint32_t least, emitter.extreme(OperationType::kReduceMin, turned));

  HEARTH_ASSIGN(const uint32_t sides, emitter.arithmetic(OperationType::kSub, most, least, {1, 2}));
  HEARTH_ASSIGN(const uint32_t factors, emitter.row(box.sizeFactors));
  HEARTH_ASSIGN(const uint32_t steps,
                emitter.arithmetic(OperationType::kMul, sides, factors, {1, 2}));
  HEARTH_ASSIGN(uint32_t linear, emitter.arithmetic(OperationType::kMul, turn, steps, {2, 2}));
  HEARTH_ASSIGN(const uint32_t sums, emitter.arithmetic(OperationType::kAdd, most, least, {1, 2}));
  HEARTH_ASSIGN(const uint32_t half, view.floatTensor(0.5f, {1, 1}));
  HEARTH_ASSIGN(const uint32_t middle, emitter.arithmetic(OperationType::kMul, sums, half, {1, 2}));
  HEARTH_ASSIGN(uint32_t centre, emitter.product(middle, turn, true));
  if (box.hasOutputFactors) {
    HEARTH_ASSIGN(const uint32_t outputFactors, floatConstant(view, {2, 1}, box.outputFactors));
    HEARTH_ASSIGN(linear, emitter.arithmetic(OperationType::kMul, linear, outputFactors, {2, 2}));
    HEARTH_ASSIGN(const uint32_t centreFactors, emitter.row(box.centreFactors));
    HEARTH_ASSIGN(centre, emitter.arithmetic(OperationType::kMul, centre, centreFactors, {1, 2}));
  }
  HEARTH_ASSIGN(const uint32_t toMiddle, emitter.row(box.toMiddle));
  HEARTH_ASSIGN(const uint32_t first, emitter.product(toMiddle, linear, true));
  HEARTH_ASSIGN(const uint32_t shift,
                emitter.arithmetic(OperationType::kAdd, centre, first, {1, 2}));

  HEARTH_ASSIGN(const uint32_t shiftColumn, emitter.reshape(shift, {2, 1}));
  HEARTH_ASSIGN(const uint32_t depthColumn, floatConstant(view, {2, 1}, std::array{0.0f, 0.0f}));
  HEARTH_ASSIGN(const uint32_t upper, emitter.join({linear, depthColumn, shiftColumn}, 1, {2, 4}));
  constexpr std::array<float, 8> kLowerRows = {0, 0, 1, 0, 0, 0, 0, 1};
  HEARTH_ASSIGN(const uint32_t lower, floatConstant(view, {2, 4}, kLowerRows));
  HEARTH_ASSIGN(const uint32_t matrix, emitter.join({upper, lower}, 0, {4, 4}));
  HEARTH_ASSIGN(const uint32_t outputShape, view.builder().intTensor(std::array{1, 4, 4}));
  HEARTH_ASSIGN(const uint32_t output, outputOfShape(view, 0, {1, 4, 4}));
  return view.emit(OperationType::kReshape, {matrix, outputShape}, {output});
}

}  // namespace

std::span<const CustomTranslatorEntry> landmarkTranslators() {
  static constexpr CustomTranslatorEntry kTranslators[] = {
      {"Landmarks2TransformMatrix",
       {BuiltinOperator::CUSTOM, translateLandmarksToMatrix, OperationType::kBatchMatmul}},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
