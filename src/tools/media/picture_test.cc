// SPDX-License-Identifier: Apache-2.0
// Decoding, resizing and conversion of pictures, compared with results of Pillow and NumPy.
#include "tools/media/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "tools/media/elements.h"
#include "tools/media/file.h"
#include "tools/media/npy.h"
#include "tools/media/overlay.h"
#include "tools/media/picture_tensor.h"
#include "tools/media/resize.h"

namespace hearth::tools {
namespace {

using ::testing::HasSubstr;

TensorInfo tensor(hearth_type type, std::vector<uint32_t> dimensions, float scale = 0,
                  int32_t zeroPoint = 0) {
  TensorInfo info;
  info.name = "input";
  info.type = type;
  info.dimensions = std::move(dimensions);
  info.scale = scale;
  info.zeroPoint = zeroPoint;
  return info;
}

Picture gradient(uint32_t width, uint32_t height) {
  Picture picture{width, height, 3, {}};
  for (uint32_t i = 0; i < width * height * 3; ++i)
    picture.samples.push_back(static_cast<uint8_t>(i * 37 % 256));
  return picture;
}

TEST(PictureTest, PngSurvivesARoundTrip) {
  const Picture picture = gradient(7, 5);
  const auto png = encodePng(picture);
  ASSERT_TRUE(png);
  const auto back = decodePicture(*png);
  ASSERT_TRUE(back) << back.error().toString();
  EXPECT_EQ(back->width, 7u);
  EXPECT_EQ(back->height, 5u);
  EXPECT_EQ(back->samples, picture.samples);
}

TEST(PictureTest, RefusesGarbageAndHugePictures) {
  EXPECT_FALSE(decodePicture(std::vector<uint8_t>{}));
  EXPECT_FALSE(decodePicture(std::vector<uint8_t>(100, 0x55)));
  auto png = encodePng(gradient(7, 5));
  ASSERT_TRUE(png);
  for (size_t size = 0; size + 20 < png->size(); size += 3)
    EXPECT_FALSE(decodePicture(std::span(*png).first(size))) << size;
  // Width and height of the header chunk: 65536 x 4096 pixels.
  const uint8_t huge[8] = {0, 1, 0, 0, 0, 0, 0x10, 0};
  std::memcpy(png->data() + 16, huge, sizeof(huge));
  const auto refused = decodePicture(*png);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("65536 x 4096"));
}

TEST(PictureTest, LumaKeepsGrey) {
  Picture picture{256, 1, 3, {}};
  for (int i = 0; i < 256; ++i)
    for (int c = 0; c < 3; ++c) picture.samples.push_back(static_cast<uint8_t>(i));
  const Picture grey = toGrey(picture);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(grey.samples[i], i);
  EXPECT_EQ(toGrey(Picture{1, 1, 3, {255, 0, 0}}).samples[0], 76);
  EXPECT_EQ(toGrey(Picture{1, 1, 3, {0, 255, 0}}).samples[0], 150);
  EXPECT_EQ(toGrey(Picture{1, 1, 3, {0, 0, 255}}).samples[0], 29);
}

TEST(ResizeTest, KeepsConstantPicturesAndSizes) {
  const Picture flat{9, 11, 3, std::vector<uint8_t>(9 * 11 * 3, 200)};
  const auto smaller = resizeBilinear(flat, 4, 30);
  ASSERT_TRUE(smaller);
  EXPECT_EQ(smaller->samples, std::vector<uint8_t>(4 * 30 * 3, 200));
  const Picture picture = gradient(6, 4);
  EXPECT_EQ(resizeBilinear(picture, 6, 4)->samples, picture.samples);
}

TEST(ResizeTest, AveragesWhenShrinking) {
  // Shrinks by 4: the filter spans 8 samples; at each border, 4 of them lie outside and are left
  // out.
  const Picture picture{8, 1, 1, {0, 0, 0, 0, 255, 255, 255, 255}};
  const auto half = resizeBilinear(picture, 2, 1);
  ASSERT_TRUE(half);
  EXPECT_GT(half->samples[0], 0);
  EXPECT_LT(half->samples[0], 64);
  EXPECT_EQ(half->samples[0] + half->samples[1], 255);
}

TEST(ResizeTest, RefusesAbsurdSizes) {
  const Picture picture = gradient(2, 2);
  EXPECT_FALSE(resizeBilinear(picture, 0, 1));
  EXPECT_FALSE(resizeBilinear(picture, 65537, 1));
  EXPECT_FALSE(resizeBilinear(picture, 65536, 65536));
}

TEST(PictureTensorTest, FollowsTypeAndLayout) {
  const Picture picture{2, 1, 3, {0, 128, 255, 1, 2, 3}};
  const auto bytes = pictureToTensor(picture, tensor(HEARTH_TYPE_UINT8, {1, 1, 2, 3}), {});
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->bytes, TensorBytes(picture.samples.begin(), picture.samples.end()));
  const auto planar = pictureToTensor(picture, tensor(HEARTH_TYPE_INT8, {1, 3, 1, 2}), {});
  ASSERT_TRUE(planar);
  EXPECT_EQ(toNumbers(*planar), (std::vector<double>{-128, -127, 0, -126, 127, -125}));
  const auto real = pictureToTensor(picture, tensor(HEARTH_TYPE_FLOAT32, {1, 1, 2, 3}), {});
  ASSERT_TRUE(real);
  EXPECT_FLOAT_EQ(static_cast<float>(toNumbers(*real)[0]), -1.0f);
  EXPECT_FLOAT_EQ(static_cast<float>(toNumbers(*real)[2]), 1.0f);
  const auto grey = pictureToTensor(picture, tensor(HEARTH_TYPE_UINT8, {1, 1, 2}), {});
  ASSERT_TRUE(grey);
  EXPECT_EQ(grey->shape, (std::vector<uint64_t>{1, 1, 2}));
}

TEST(PictureTensorTest, NormalizesAndQuantizes) {
  const Picture picture{1, 1, 3, {10, 20, 255}};
  const Normalization normalization{{10, 10, 0}, {1, 2, 0.5}};
  const auto q =
      pictureToTensor(picture, tensor(HEARTH_TYPE_INT8, {1, 1, 1, 3}, 0.5f, -3), normalization);
  ASSERT_TRUE(q);
  EXPECT_EQ(toNumbers(*q), (std::vector<double>{-3, 7, 127}));
  EXPECT_FALSE(pictureToTensor(picture, tensor(HEARTH_TYPE_UINT8, {1, 1, 1, 3}), normalization));
}

TEST(PictureTensorTest, RefusesOtherTensors) {
  const Picture picture = gradient(2, 2);
  for (const std::vector<uint32_t>& shape :
       {std::vector<uint32_t>{}, std::vector<uint32_t>{1, 10}, std::vector<uint32_t>{2, 4, 4, 3},
        std::vector<uint32_t>{1, 4, 4, 2}, std::vector<uint32_t>{1, 1, 4, 4, 3}}) {
    const auto refused = pictureToTensor(picture, tensor(HEARTH_TYPE_UINT8, shape), {});
    ASSERT_FALSE(refused) << shapeText(shape);
    EXPECT_THAT(refused.error().message(), HasSubstr(shapeText(shape)));
  }
  EXPECT_FALSE(pictureToTensor(picture, tensor(HEARTH_TYPE_INT32, {1, 2, 2, 3}), {}));
}

struct GoldenCase {
  const char* picture;
  const char* input;
  hearth_type type;
  std::vector<uint32_t> dimensions;
  float scale;
  int32_t zeroPoint;
  bool isNormalized;
};

TEST(PictureTensorTest, MatchesPillow) {
  const char* data = std::getenv("HEARTH_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
  const std::string root = std::string(data) + "/data/";
  const GoldenCase cases[] = {
      {"cat.bmp", "mobilenet_v1_0.25_128_quant", HEARTH_TYPE_UINT8, {1, 128, 128, 3}, 0, 0, false},
      {"bird.bmp",
       "mobilenet_v1_0.25_128_quant/alt_bird",
       HEARTH_TYPE_UINT8,
       {1, 128, 128, 3},
       0,
       0,
       false},
      {"bird.bmp", "deeplabv3_mnv2_pascal_quant", HEARTH_TYPE_UINT8, {1, 513, 513, 3}, 0, 0, false},
      {"cat.bmp",
       "mobilenet_v2_quantized_1x3x224x224",
       HEARTH_TYPE_INT8,
       {1, 3, 224, 224},
       0.0186311156f,
       -14,
       true},
      {"person.bmp", "person_detect", HEARTH_TYPE_INT8, {1, 96, 96, 1}, 0, 0, false},
      {"mnist_nine.bmp", "keras_lstm_mnist_ptq", HEARTH_TYPE_UINT8, {1, 28, 28}, 0, 0, false},
  };
  const Normalization imagenet{{123.675, 116.28, 103.53}, {58.395, 57.12, 57.375}};
  for (const GoldenCase& golden : cases) {
    const auto file = readFile(root + "images/" + golden.picture);
    ASSERT_TRUE(file) << file.error().toString();
    const auto picture = decodePicture(*file);
    ASSERT_TRUE(picture) << picture.error().toString();
    const auto made = pictureToTensor(
        *picture, tensor(golden.type, golden.dimensions, golden.scale, golden.zeroPoint),
        golden.isNormalized ? std::optional(imagenet) : std::nullopt);
    ASSERT_TRUE(made) << made.error().toString();
    const auto expectedFile = readFile(root + "golden/" + golden.input + "/input_0.npy");
    ASSERT_TRUE(expectedFile);
    const auto expected = parseNpy(*expectedFile);
    ASSERT_TRUE(expected) << expected.error().toString();
    EXPECT_EQ(made->shape, expected->shape);
    const std::vector<double> a = toNumbers(*made);
    const std::vector<double> b = toNumbers(*expected);
    ASSERT_EQ(a.size(), b.size());
    size_t differing = 0;
    for (size_t i = 0; i < a.size(); ++i) differing += a[i] != b[i];
    EXPECT_EQ(differing, 0u) << golden.input;
  }
}

TEST(OverlayTest, FindsClassMaps) {
  const Array map{HEARTH_TYPE_UINT8, {1, 2, 2}, {0, 3, 3, 1}};
  const auto found = classMapOf(map, tensor(HEARTH_TYPE_UINT8, {1, 2, 2}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->classes, (std::vector<uint32_t>{0, 3, 3, 1}));
  EXPECT_EQ(countClasses(*found).front(), (std::pair<uint32_t, uint64_t>{3, 2}));
  // Quantised values are not class indices.
  EXPECT_FALSE(classMapOf(map, tensor(HEARTH_TYPE_UINT8, {1, 2, 2}, 0.5f)));

  const Array scores{HEARTH_TYPE_INT8, {1, 2, 2, 2}, {1, 0, 0, 1, 5, 5, 0x80, 0x7F}};
  const auto best = classMapOf(scores, tensor(HEARTH_TYPE_INT8, {1, 2, 2, 2}, 0.5f));
  ASSERT_TRUE(best);
  EXPECT_EQ(best->classes, (std::vector<uint32_t>{0, 1, 0, 1}));
  EXPECT_FALSE(classMapOf({HEARTH_TYPE_UINT8, {1, 1, 4}, {0, 0, 0, 0}},
                          tensor(HEARTH_TYPE_UINT8, {1, 1, 4})));
}

TEST(OverlayTest, BlendsWithThePicture) {
  const ClassMap map{1, 2, {0, 1}};
  const Picture picture{2, 2, 1, {10, 20, 30, 40}};
  const Picture overlay = drawOverlay(map, picture);
  EXPECT_EQ(overlay.width, 2u);
  EXPECT_EQ(overlay.pixel(1, 0)[2], 20);
  const Colour colour = classColour(1);
  EXPECT_EQ(overlay.pixel(0, 1)[0], (30 + colour[0]) / 2);
  const Picture alone = drawOverlay(map, std::nullopt);
  EXPECT_EQ(alone.height, 2u);
  EXPECT_EQ(alone.pixel(0, 1)[1], colour[1]);
}

}  // namespace
}  // namespace hearth::tools
