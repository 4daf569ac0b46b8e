// SPDX-License-Identifier: Apache-2.0
// The operations are compared with plain computations in double precision.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

using Numbers = std::vector<std::pair<std::string, double>>;
using Lists = std::vector<std::pair<std::string, std::vector<int32_t>>>;

constexpr std::array kKernelSets = {ops::KernelSet::kFast, ops::KernelSet::kReference};

void expectNear(const std::vector<float>& found, const std::vector<double>& expected,
                double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], tolerance) << "at " << i;
}

// A face's outline in 40 landmarks, somewhat turned.
std::vector<float> outline() {
  std::vector<float> landmarks;
  for (int i = 0; i < 40; ++i) {
    landmarks.push_back(static_cast<float>(96 + 50 * std::cos(0.15 * i) + 8 * std::sin(0.4 * i)));
    landmarks.push_back(static_cast<float>(90 + 61 * std::sin(0.15 * i)));
    landmarks.push_back(static_cast<float>(i));
  }
  return landmarks;
}

// Landmarks2TransformMatrix --------------------------------------------------------------------

Numbers boxOptions2(Numbers others = {}) {
  Numbers options = {
      {"left_rotation_idx", 3},        {"right_rotation_idx", 17}, {"output_width", 16},
      {"output_height", 12},           {"scale_x", 1.5},           {"scale_y", 1.25},
      {"target_rotation_radians", 0.5}};
  for (const auto& [name, value] : others)
    for (auto& option : options)
      if (option.first == name) option.second = value;
  return options;
}

Numbers boxOptions1() {
  return {{"dimensions", 3},
          {"landmarks_range", 192},
          {"bbox_size_multiplier", 1.5},
          {"left_rotation_idx", 3},
          {"right_rotation_idx", 30}};
}

const std::vector<int32_t> kSubset = {5, 8, 3, 17, 20, 11, 30};

FloatModel matrixModel(int32_t version, const Numbers& numbers, const Lists& lists,
                       ModelWriter::Shape shape) {
  FloatModel model({std::move(shape)}, {{1, 4, 4}});
  model.addCustom("Landmarks2TransformMatrix", {0}, {1}, flexMap(numbers, lists), version);
  return model;
}

FloatModel matrixModel2(Numbers others = {}) {
  return matrixModel(2, boxOptions2(std::move(others)), {{"subset_idxs", kSubset}}, {1, 40, 3});
}

FloatModel matrixModel1(const Lists& lists) {
  return matrixModel(1, boxOptions1(), lists, {1, 1, 1, 120});
}

const Lists kLists1 = {{"subset", kSubset}, {"input_hw", {48, 32}}, {"output_hw", {12, 16}}};

struct TurnedBox {
  double cosine, sine;   // of the angle by which landmarks are turned
  double width, height;  // of the box around them
  double x, y;           // its middle among the landmarks
};

TurnedBox turnedBox(const std::vector<float>& landmarks, double angle) {
  TurnedBox box{std::cos(angle), std::sin(angle), 0, 0, 0, 0};
  double left = 1e9, right = -1e9, top = 1e9, bottom = -1e9;
  for (const int32_t i : kSubset) {
    const double x = landmarks[3 * i], y = landmarks[3 * i + 1];
    const double turnedX = box.cosine * x - box.sine * y, turnedY = box.sine * x + box.cosine * y;
    left = std::min(left, turnedX);
    right = std::max(right, turnedX);
    top = std::min(top, turnedY);
    bottom = std::max(bottom, turnedY);
  }
  box.width = right - left;
  box.height = bottom - top;
  const double middleX = (left + right) / 2, middleY = (top + bottom) / 2;
  box.x = box.cosine * middleX + box.sine * middleY;
  box.y = -box.sine * middleX + box.cosine * middleY;
  return box;
}

TEST(LandmarkTranslators, TheMatrixLeadsFromTheUprightPictureToTheLandmarks) {
  const std::vector<float> landmarks = outline();
  const double line = std::atan2(landmarks[3 * 17 + 1] - landmarks[3 * 3 + 1],
                                 landmarks[3 * 17] - landmarks[3 * 3]);
  const TurnedBox box = turnedBox(landmarks, 0.5 - line);
  const double stepX = 1.5 * box.width / 16, stepY = 1.25 * box.height / 12;
  const std::vector<double> expected = {box.cosine * stepX,
                                        box.sine * stepY,
                                        0,
                                        box.x - 8 * box.cosine * stepX - 6 * box.sine * stepY,
                                        -box.sine * stepX,
                                        box.cosine * stepY,
                                        0,
                                        box.y + 8 * box.sine * stepX - 6 * box.cosine * stepY,
                                        0,
                                        0,
                                        1,
                                        0,
                                        0,
                                        0,
                                        0,
                                        1};
  for (const ops::KernelSet kernels : kKernelSets)
    expectNear(outputsOf(matrixModel2(), {landmarks}, kernels).at(0), expected, 1e-4);
}

TEST(LandmarkTranslators, TheFirstVersionOfTheMatrixCountsInPixelsOfTheInput) {
  const std::vector<float> landmarks = outline();
  const double line = std::atan((landmarks[3 * 30 + 1] - landmarks[3 * 3 + 1]) /
                                (landmarks[3 * 30] - landmarks[3 * 3]));
  const TurnedBox box = turnedBox(landmarks, -line);
  // From pixels of the output in [-1, 1], by the box, to those of the input.
  const auto map = [&](double x, double y) {
    const double relativeX = 2 * x / 15 - 1, relativeY = 2 * y / 11 - 1;
    const double boxX = relativeX * box.width * 1.5 / 192;
    const double boxY = relativeY * box.height * 1.5 / 192;
    const double foundX = box.cosine * boxX + box.sine * boxY + 2 * box.x / 192 - 1;
    const double foundY = -box.sine * boxX + box.cosine * boxY + 2 * box.y / 192 - 1;
    return std::pair(31 * (foundX + 1) / 2, 47 * (foundY + 1) / 2);
  };
  for (const ops::KernelSet kernels : kKernelSets) {
    const std::vector<float> matrix = outputsOf(matrixModel1(kLists1), {landmarks}, kernels).at(0);
    ASSERT_EQ(matrix.size(), 16U);
    for (const auto& [x, y] : {std::pair(0.0, 0.0), {15.0, 0.0}, {0.0, 11.0}, {7.0, 4.0}}) {
      const auto [expectedX, expectedY] = map(x, y);
      EXPECT_NEAR(matrix[0] * x + matrix[1] * y + matrix[3], expectedX, 1e-4);
      EXPECT_NEAR(matrix[4] * x + matrix[5] * y + matrix[7], expectedY, 1e-4);
    }
    EXPECT_THAT(std::vector(matrix.begin() + 8, matrix.end()), ElementsAre(0, 0, 1, 0, 0, 0, 0, 1));
  }
}

TEST(LandmarkTranslators, WrongMatrices) {
  EXPECT_THAT(errorOf(matrixModel2({{"left_rotation_idx", 40}})), HasSubstr("40 landmarks"));
  EXPECT_THAT(errorOf(matrixModel2({{"right_rotation_idx", -1}})), HasSubstr("40 landmarks"));
  EXPECT_THAT(errorOf(matrixModel2({{"output_width", 0}})), HasSubstr("output_width"));
  EXPECT_THAT(errorOf(matrixModel2({{"scale_y", 0}})), HasSubstr("above 0"));
  EXPECT_THAT(errorOf(matrixModel(2, boxOptions2(), {}, {1, 40, 3})), HasSubstr("subset_idxs"));
  EXPECT_THAT(errorOf(matrixModel(2, boxOptions2(), {{"subset_idxs", {1, 40}}}, {1, 40, 3})),
              HasSubstr("landmark 40 of 40"));
  EXPECT_THAT(errorOf(matrixModel(2, boxOptions2(), {{"subset_idxs", {1}}}, {1, 40, 2})),
              HasSubstr("must be [1,n,3]"));
  EXPECT_THAT(errorOf(matrixModel(3, boxOptions2(), {{"subset_idxs", {1}}}, {1, 40, 3})),
              HasSubstr("version 3"));
  EXPECT_THAT(errorOf(matrixModel1({{"subset", {1}}, {"input_hw", {48, 32}}})),
              HasSubstr("output_hw"));
  EXPECT_THAT(errorOf(matrixModel1({{"subset", {1}}, {"input_hw", {48}}, {"output_hw", {12, 16}}})),
              HasSubstr("input_hw"));
  EXPECT_THAT(
      errorOf(matrixModel1({{"subset", {1}}, {"input_hw", {48, 32}}, {"output_hw", {1, 16}}})),
      HasSubstr("2 or more"));
}

// TransformLandmarks ---------------------------------------------------------------------------

const std::vector<float> kMatrix = {0.8f, -0.6f, 5, 3.5f, 0.5f, 1.25f, 7, -2,
                                    9,    9,     9, 9,    9,    9,     9, 9};

FloatModel landmarkModel(int32_t version, ModelWriter::Shape shape, std::vector<uint8_t> options) {
  FloatModel model({std::move(shape), {1, 4, 4}}, {{}});
  model.addCustom("TransformLandmarks", {0, 1}, {2}, std::move(options), version);
  return model;
}

TEST(LandmarkTranslators, LandmarksMoveInTheirPlane) {
  const std::vector<float> landmarks = {1, 2, 30, 4, 5, 60, -7, 8, 90};
  for (const ops::KernelSet kernels : kKernelSets) {
    const auto solid = outputsOf(landmarkModel(2, {1, 3, 3}, {}), {landmarks, kMatrix}, kernels);
    expectNear(solid.at(0), {3.1, 1, 30, 3.7, 6.25, 60, -6.9, 4.5, 90}, 1e-5);
    const auto flat = outputsOf(landmarkModel(2, {1, 2, 2}, {}), {{1, 2, 4, 5}, kMatrix}, kernels);
    expectNear(flat.at(0), {3.1, 1, 3.7, 6.25}, 1e-5);
    // Version 1 has all coordinates in one dimension, and a scale for the shift.
    const auto scaled =
        outputsOf(landmarkModel(1, {1, 1, 1, 9}, flexMap({{"dimensions", 3}, {"scale", 2}})),
                  {landmarks, kMatrix}, kernels);
    expectNear(scaled.at(0), {6.6, -1, 30, 7.2, 4.25, 60, -3.4, 2.5, 90}, 1e-5);
  }
}

TEST(LandmarkTranslators, WrongLandmarks) {
  EXPECT_THAT(errorOf(landmarkModel(2, {1, 3, 4}, {})), HasSubstr("two or three"));
  EXPECT_THAT(errorOf(landmarkModel(2, {2, 3, 3}, {})), HasSubstr("[2,3,3]"));
  EXPECT_THAT(errorOf(landmarkModel(1, {1, 3, 3}, {})), HasSubstr("[1,3,3]"));
  EXPECT_THAT(errorOf(landmarkModel(1, {1, 1, 1, 8}, flexMap({{"dimensions", 3}, {"scale", 2}}))),
              HasSubstr("two or three"));
  EXPECT_THAT(errorOf(landmarkModel(1, {1, 1, 1, 8}, flexMap({{"dimensions", 2}}))),
              HasSubstr("scale"));
  FloatModel model({{1, 3, 3}, {1, 2, 4}}, {{}});
  model.addCustom("TransformLandmarks", {0, 1}, {2}, {}, 2);
  EXPECT_THAT(errorOf(model), HasSubstr("16 elements"));
}

// TransformTensorBilinear ----------------------------------------------------------------------

constexpr int kHeight = 7;
constexpr int kWidth = 5;
constexpr int kChannels = 3;

std::vector<float> samplePicture() {
  std::vector<float> picture;
  for (int i = 0; i < kHeight * kWidth * kChannels; ++i)
    picture.push_back(static_cast<float>(std::sin(0.7 * i) * (i % 11)));
  return picture;
}

FloatModel pictureModel(int32_t version, std::vector<uint8_t> options) {
  FloatModel model({{1, kHeight, kWidth, kChannels}, {1, 4, 4}}, {{}});
  model.addCustom("TransformTensorBilinear", {0, 1}, {2}, std::move(options), version);
  return model;
}

std::vector<double> sampled(const std::vector<float>& picture, const std::vector<float>& matrix,
                            double middle, int height, int width) {
  const auto at = [&](int y, int x, int channel) {
    return y < kHeight && x < kWidth ? double{picture[(y * kWidth + x) * kChannels + channel]} : 0;
  };
  std::vector<double> values;
  for (int row = 0; row < height; ++row)
    for (int column = 0; column < width; ++column) {
      const double x =
          matrix[0] * (column + middle) + matrix[1] * (row + middle) + matrix[3] - middle;
      const double y =
          matrix[4] * (column + middle) + matrix[5] * (row + middle) + matrix[7] - middle;
      const bool isInside = x >= 0 && x <= kWidth - 1 && y >= 0 && y <= kHeight - 1;
      const int left = isInside ? static_cast<int>(x) : 0, top = isInside ? static_cast<int>(y) : 0;
      for (int c = 0; c < kChannels; ++c) {
        const double upper = (left + 1 - x) * at(top, left, c) + (x - left) * at(top, left + 1, c);
        const double lower =
            (left + 1 - x) * at(top + 1, left, c) + (x - left) * at(top + 1, left + 1, c);
        values.push_back(isInside ? (top + 1 - y) * upper + (y - top) * lower : 0);
      }
    }
  return values;
}

TEST(LandmarkTranslators, PicturesAreSampledBetweenTheirPixels) {
  const std::vector<float> picture = samplePicture();
  const std::vector<float> turned = {0.5f, -0.25f, 0, 1.4f, 0.375f, 0.75f, 0, -0.3f};
  const std::vector<float> same = {1, 0, 0, 0, 0, 1, 0, 0};
  const auto second = flexMap({{"output_height", 8}, {"output_width", 6}});
  const auto first = flexMap({}, {{"output_size", {8, 6}}});
  for (std::vector<float> matrix : {turned, same}) {
    matrix.resize(16);
    for (const ops::KernelSet kernels : kKernelSets) {
      expectNear(outputsOf(pictureModel(2, second), {picture, matrix}, kernels).at(0),
                 sampled(picture, matrix, 0.5, 8, 6), 1e-5);
      expectNear(outputsOf(pictureModel(1, first), {picture, matrix}, kernels).at(0),
                 sampled(picture, matrix, 0, 8, 6), 1e-5);
    }
  }
}

TEST(LandmarkTranslators, PlacesThatAreNoNumbersGiveZeros) {
  const auto options = flexMap({{"output_height", 2}, {"output_width", 2}});
  for (const float wrong : {NAN, INFINITY, -INFINITY, 3e38f}) {
    const std::vector<float> matrix(16, wrong);
    for (const ops::KernelSet kernels : kKernelSets)
      expectNear(outputsOf(pictureModel(2, options), {samplePicture(), matrix}, kernels).at(0),
                 std::vector<double>(2 * 2 * kChannels, 0), 0);
  }
}

TEST(LandmarkTranslators, WrongPictures) {
  EXPECT_THAT(errorOf(pictureModel(2, flexMap({{"output_height", 8}}))), HasSubstr("output_width"));
  EXPECT_THAT(errorOf(pictureModel(1, flexMap({}, {{"output_size", {8}}}))),
              HasSubstr("output_size"));
  EXPECT_THAT(errorOf(pictureModel(3, flexMap({}, {{"output_size", {8, 6}}}))),
              HasSubstr("version 3"));
  EXPECT_NE(errorOf(pictureModel(
                2, flexMap({{"output_height", INT32_MAX}, {"output_width", INT32_MAX}}))),
            "imported");
  FloatModel model({{2, 7, 5, 3}, {1, 4, 4}}, {{}});
  model.addCustom("TransformTensorBilinear", {0, 1}, {2},
                  flexMap({{"output_height", 8}, {"output_width", 8}}), 2);
  EXPECT_THAT(errorOf(model), HasSubstr("one picture"));
}

}  // namespace
}  // namespace hearth::tflite
