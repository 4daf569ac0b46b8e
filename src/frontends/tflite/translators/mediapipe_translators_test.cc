// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

using graph::Dimensions;

// The structures of MediaPipe's options: 32-bit integers.
std::vector<uint8_t> structure(const std::vector<int32_t>& values) {
  std::vector<uint8_t> bytes;
  for (const int32_t value : values)
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<uint8_t>(static_cast<uint32_t>(value) >> shift));
  return bytes;
}

FloatModel transposed(const std::vector<int32_t>& options) {
  FloatModel model({{1, 3, 4, 2}}, {{}});
  std::vector<uint8_t> zeros(5 * 3 * 3 * 2 * sizeof(float));
  const int32_t filter = model.addConstantBytes(TensorType::FLOAT32, {5, 3, 3, 2}, zeros);
  zeros.resize(5 * sizeof(float));
  const int32_t bias = model.addConstantBytes(TensorType::FLOAT32, {5}, zeros);
  model.addCustom("Convolution2DTransposeBias", {0, filter, bias}, {1}, structure(options));
  return model;
}

TEST(MediapipeTranslators, TransposedConvolution) {
  const ImportedGraph same = import(transposed({1, 2, 2}));
  EXPECT_THAT(linesOf(*same.model),
              ElementsAre("TRANSPOSE_CONV_2D t0 t2 t3 0 1 1 1 2 2 0 false -> t1"));
  EXPECT_EQ(same.outputs[0].dimensions, (Dimensions{1, 5, 8, 5}));
  // Without padding, and with bytes of newer structures behind the known ones.
  const ImportedGraph valid = import(transposed({2, 2, 2, 0, 0}));
  EXPECT_EQ(valid.outputs[0].dimensions, (Dimensions{1, 7, 9, 5}));
}

TEST(MediapipeTranslators, TransposedConvolutionOfAnyBatch) {
  FloatModel model = transposed({1, 2, 2});
  model.tensor(0).shape_signature = {-1, 3, 4, 2};
  const ImportedGraph any = import(model);
  EXPECT_EQ(any.outputs[0].dimensions, (Dimensions{0, 5, 8, 5}));
}

TEST(MediapipeTranslators, WrongTransposedConvolutions) {
  EXPECT_THAT(errorOf(transposed({1, 2})), HasSubstr("have 8 bytes"));
  EXPECT_THAT(errorOf(transposed({0, 2, 2})), HasSubstr("padding 0 is unknown"));
  EXPECT_THAT(errorOf(transposed({1, 0, 2})), HasSubstr("give no size"));
  EXPECT_THAT(errorOf(transposed({1, 2, -2})), HasSubstr("give no size"));
  EXPECT_NE(errorOf(transposed({2, INT32_MAX, INT32_MAX})), "imported");
}

FloatModel pool(const std::vector<int32_t>& options) {
  FloatModel model({{1, 4, 6, 2}}, {{1, 2, 3, 2}, {1, 2, 3, 2}});
  model.addCustom("MaxPoolingWithArgmax2D", {0}, {1, 2}, structure(options));
  return model;
}

TEST(MediapipeTranslators, PoolWithPlaces) {
  const ImportedGraph imported = import(pool({2, 2, 2, 2, 2, 0}));
  EXPECT_THAT(linesOf(*imported.model),
              ElementsAre("RESHAPE t0 {1,2,2,3,2,2} -> %", "TRANSPOSE % {0,1,3,5,2,4} -> %",
                          "RESHAPE % {1,2,3,2,4} -> %", "REDUCE_MAX % {4} false -> t1",
                          "ARGMAX % 4 -> %", "CAST % -> %", "ADD % % 0 -> t2"));
  EXPECT_EQ(imported.outputs[1].dimensions, (Dimensions{1, 2, 3, 2}));
}

// A pool as it is defined, element by element; its options are those of the operation.
struct Pooled {
  std::vector<float> maxima;
  std::vector<float> places;
};

Pooled pooled(const std::vector<float>& image, int height, int width, int channels,
              const std::vector<int32_t>& options) {
  const int strideX = options[1], strideY = options[2], sizeX = options[3], sizeY = options[4];
  const bool isSame = options[0] == 1;
  const auto countOf = [&](int side, int size, int stride) {
    return isSame ? (side + stride - 1) / stride : (side - size + stride) / stride;
  };
  const int rows = countOf(height, sizeY, strideY), columns = countOf(width, sizeX, strideX);
  const int top = std::max((rows - 1) * strideY + sizeY - height, 0) / 2;
  const int left = std::max((columns - 1) * strideX + sizeX - width, 0) / 2;
  const float least = options[5] == 0 ? -1e9f : options[5] == 2 ? -1.0f : 0.0f;
  const float most = options[5] == 2 ? 1.0f : options[5] == 3 ? 6.0f : 1e9f;
  Pooled result;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column)
      for (int channel = 0; channel < channels; ++channel) {
        float largest = -1e9f;
        int place = 0;
        for (int i = 0; i < sizeX * sizeY; ++i) {
          const int y = row * strideY - top + i / sizeX, x = column * strideX - left + i % sizeX;
          if (y < 0 || y >= height || x < 0 || x >= width) continue;
          const float value = image[(y * width + x) * channels + channel];
          if (value <= largest) continue;
          largest = value;
          place = i;
        }
        result.maxima.push_back(std::clamp(largest, least, most));
        result.places.push_back(static_cast<float>(place) + 0.1f);
      }
  return result;
}

TEST(MediapipeTranslators, PoolsOfAllWindows) {
  std::vector<float> image;
  for (int i = 0; i < 4 * 6 * 2; ++i) image.push_back(static_cast<float>(i * 37 % 23) - 11);
  for (const std::vector<int32_t>& options :
       std::vector<std::vector<int32_t>>{{2, 2, 2, 2, 2, 0},  // side by side
                                         {2, 1, 1, 2, 2, 0},  // overlapping
                                         {1, 1, 2, 3, 3, 0},  // beyond the image
                                         {2, 3, 2, 2, 1, 0},  // with elements between them
                                         {1, 4, 3, 2, 2, 0},  // the same, and padding
                                         {1, 2, 2, 5, 9, 1},  // larger than the image
                                         {2, 2, 2, 2, 2, 2},  // clipped
                                         {1, 2, 2, 3, 2, 3}}) {
    const Pooled expected = pooled(image, 4, 6, 2, options);
    for (const auto kernels : {ops::KernelSet::kFast, ops::KernelSet::kReference}) {
      const auto found = outputsOf(pool(options), {image}, kernels);
      EXPECT_EQ(found.at(0), expected.maxima) << ::testing::PrintToString(options);
      EXPECT_EQ(found.at(1), expected.places) << ::testing::PrintToString(options);
    }
  }
}

TEST(MediapipeTranslators, WrongPools) {
  EXPECT_THAT(errorOf(pool({2, 2, 2, 7, 2, 0})), HasSubstr("do not fit"));
  EXPECT_THAT(errorOf(pool({2, 0, 0, 0, 0, 0})), HasSubstr("are 0 apart"));
  EXPECT_THAT(errorOf(pool({2, -2, -2, -2, -2, 0})), HasSubstr("are -2 apart"));
  EXPECT_THAT(errorOf(pool({2, 2, 2, 2, 2, 4})), HasSubstr("activation 4"));
  EXPECT_NE(errorOf(pool({1, 1, 1, INT32_MAX, INT32_MAX, 0})), "imported");
  EXPECT_NE(errorOf(pool({1, 1, 1, 1, 1 << 30, 0})), "imported");
  EXPECT_THAT(errorOf(pool({2, 2, 2, 2, 2})), HasSubstr("have 20 bytes"));
  FloatModel model({{1, 4, 6, 2}}, {{1, 2, 3, 2}});
  model.addCustom("MaxPoolingWithArgmax2D", {0}, {1}, structure({2, 2, 2, 2, 2, 0}));
  EXPECT_THAT(errorOf(model), HasSubstr("has 1 outputs"));
}

FloatModel unpool(const std::vector<int32_t>& options) {
  FloatModel model({{1, 2, 3, 2}, {1, 2, 3, 2}}, {{}});
  model.addCustom("MaxUnpooling2D", {0, 1}, {2}, structure(options));
  return model;
}

TEST(MediapipeTranslators, Unpool) {
  const ImportedGraph imported = import(unpool({1, 3, 2, 3, 2}));
  EXPECT_THAT(linesOf(*imported.model),
              ElementsAre("RESHAPE t0 {1,2,3,2,1} -> %", "CAST t1 -> %",
                          "RESHAPE % {1,2,3,2,1} -> %", "EQUAL % {0,1,2,3,4,5} -> %",
                          "SELECT_V2 % % % -> %", "RESHAPE % {1,2,3,2,2,3} -> %",
                          "TRANSPOSE % {0,1,4,2,5,3} -> %", "RESHAPE % {1,4,9,2} -> t2"));
  EXPECT_EQ(imported.outputs[0].dimensions, (Dimensions{1, 4, 9, 2}));
}

// An image as MediaPipe's kernel writes it: the last window that writes an element counts.
std::vector<float> unpooled(const std::vector<float>& maxima, const std::vector<float>& places,
                            const std::vector<int32_t>& options) {
  constexpr int kRows = 2, kColumns = 3, kChannels = 2;
  const int strideX = options[1], strideY = options[2], sizeX = options[3], sizeY = options[4];
  const int height = kRows * sizeY, width = kColumns * sizeX;
  const int top = std::max((kRows - 1) * strideY + sizeY - height, 0) / 2;
  const int left = std::max((kColumns - 1) * strideX + sizeX - width, 0) / 2;
  std::vector<float> image(static_cast<size_t>(height) * width * kChannels);
  for (int i = 0; i < kRows * kColumns * kChannels; ++i) {
    const int place = static_cast<int>(places[i]);
    const int row = i / kChannels / kColumns, column = i / kChannels % kColumns;
    const int y = row * strideY - top + place / sizeX, x = column * strideX - left + place % sizeX;
    if (y >= 0 && y < height && x >= 0 && x < width)
      image[(y * width + x) * kChannels + i % kChannels] = maxima[i];
  }
  return image;
}

TEST(MediapipeTranslators, UnpoolsOfAllWindows) {
  for (const std::vector<int32_t>& options :
       std::vector<std::vector<int32_t>>{{1, 3, 2, 3, 2},     // side by side
                                         {1, 2, 2, 3, 3},     // overlapping
                                         {2, 1, 1, 4, 2},     // several over an element
                                         {1, 1, 3, 2, 2},     // along one side only
                                         {2, 4, 5, 2, 2}}) {  // with elements between them
    const int places = options[3] * options[4];
    for (int shift = 0; shift < places; ++shift) {
      std::vector<float> maxima, found;
      for (int i = 0; i < 12; ++i) {
        maxima.push_back(static_cast<float>(i + 1));
        found.push_back(static_cast<float>((i * shift + shift) % places) + 0.1f);
      }
      const std::vector<float> expected = unpooled(maxima, found, options);
      for (const auto kernels : {ops::KernelSet::kFast, ops::KernelSet::kReference})
        EXPECT_EQ(outputsOf(unpool(options), {maxima, found}, kernels).at(0), expected)
            << ::testing::PrintToString(options) << " " << shift;
    }
  }
}

TEST(MediapipeTranslators, WrongUnpools) {
  EXPECT_THAT(errorOf(unpool({1, 2, 0, 2, 2})), HasSubstr("windows of 2 are 0 apart"));
  EXPECT_THAT(errorOf(unpool({1, 1, 1, 17, 17})), HasSubstr("17 lie over one element"));
  EXPECT_NE(errorOf(unpool({1, 15000, 15000, 30000, 30000})), "imported");
  EXPECT_THAT(errorOf(unpool({1, 0, 0, 0, 0})), HasSubstr("windows are of 0 by 0"));
  EXPECT_THAT(errorOf(unpool({1, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX})),
              HasSubstr("windows are of"));
  EXPECT_NE(errorOf(unpool({1, 30000, 30000, 30000, 30000})), "imported");
}

}  // namespace
}  // namespace hearth::tflite
