// SPDX-License-Identifier: Apache-2.0
#include "tools/key_points.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace hearth::tools {
namespace {

Array floats(const std::vector<float>& values, std::vector<uint64_t> shape) {
  Array array{HEARTH_TYPE_FLOAT32, std::move(shape), {}};
  array.bytes.resize(values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

TEST(KeyPointsTest, BodiesAreInFractions) {
  std::vector<float> values;
  for (int i = 0; i < 17; ++i) values.insert(values.end(), {0.25f, 0.5f, 0.75f});
  const auto points = keyPointsOf(floats(values, {1, 1, 17, 3}), {}, "", 192, 256);
  ASSERT_TRUE(points);
  ASSERT_EQ(points->size(), 17u);
  EXPECT_EQ((*points)[3].y, 0.25);
  EXPECT_EQ((*points)[3].x, 0.5);
  EXPECT_EQ((*points)[3].score, 0.75);
}

TEST(KeyPointsTest, HandsAndFacesAreInPixels) {
  for (const uint64_t count : {21, 468, 478}) {
    std::vector<float> values;
    for (uint64_t i = 0; i < count; ++i) values.insert(values.end(), {56, 112, -3});
    for (const auto& shape :
         {std::vector<uint64_t>{1, count * 3}, {1, 1, 1, count * 3}, {1, count, 3}}) {
      const auto points = keyPointsOf(floats(values, shape), {}, "", 224, 224);
      ASSERT_TRUE(points);
      ASSERT_EQ(points->size(), count);
      EXPECT_EQ((*points)[7].x, 0.25);
      EXPECT_EQ((*points)[7].y, 0.5);
      EXPECT_FALSE((*points)[7].score);
    }
  }
}

TEST(KeyPointsTest, SmallNumbersAreFractions) {
  std::vector<float> values;
  for (int i = 0; i < 21; ++i) values.insert(values.end(), {0.25f, 0.5f, 0});
  const auto points = keyPointsOf(floats(values, {1, 63}), {}, "", 224, 224);
  ASSERT_TRUE(points);
  EXPECT_EQ((*points)[7].x, 0.25);
  EXPECT_EQ((*points)[7].y, 0.5);
}

TEST(KeyPointsTest, PointsOfAPlaneAreInPixels) {
  for (const uint64_t count : {21, 68, 478}) {
    std::vector<float> values;
    for (uint64_t i = 0; i < count; ++i) values.insert(values.end(), {56, 112});
    const auto points = keyPointsOf(floats(values, {1, count, 2}), {}, "", 224, 224);
    ASSERT_TRUE(points);
    ASSERT_EQ(points->size(), count);
    EXPECT_EQ((*points)[7].x, 0.25);
    EXPECT_EQ((*points)[7].y, 0.5);
  }
}

TEST(KeyPointsTest, NamesTellPointsOfAnyNumber) {
  const Array five = floats({10, 20, 30, 40, 50, 60, 70, 80, 90, 100}, {1, 5, 2});
  EXPECT_FALSE(keyPointsOf(five, {}, "boxes", 100, 200));
  for (const char* name : {"landmarks", "face_landmark", "Key Points", "keypoints_xy"}) {
    const auto points = keyPointsOf(five, {}, name, 100, 200);
    ASSERT_TRUE(points) << name;
    ASSERT_EQ(points->size(), 5u);
    EXPECT_EQ((*points)[1].x, 0.3);
    EXPECT_EQ((*points)[1].y, 0.2);
  }
  TensorInfo tensor;
  tensor.name = "eye_landmarks:0";
  EXPECT_TRUE(keyPointsOf(five, tensor, "", 100, 200));
  EXPECT_FALSE(keyPointsOf(floats({1, 2, 3}, {1, 1, 3}), tensor, "", 100, 200));
  EXPECT_FALSE(keyPointsOf(floats({1, 2, 3, 4}, {1, 4}), tensor, "", 100, 200));
}

TEST(KeyPointsTest, OtherOutputsAreNone) {
  EXPECT_FALSE(keyPointsOf(floats(std::vector<float>(99), {1, 99}), {}, "", 8, 8));
  EXPECT_FALSE(keyPointsOf(floats(std::vector<float>(51), {1, 51}), {}, "", 8, 8));
  EXPECT_FALSE(keyPointsOf(floats({}, {1, 0, 17, 3}), {}, "", 8, 8));
  EXPECT_FALSE(keyPointsOf(floats({}, {UINT64_MAX, 17, 3}), {}, "", 8, 8));
  std::vector<float> values(63, 1);
  values[5] = NAN;
  EXPECT_FALSE(keyPointsOf(floats(values, {1, 63}), {}, "", 8, 8));
}

}  // namespace
}  // namespace hearth::tools
