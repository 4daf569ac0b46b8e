// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

using graph::Dimensions;
using Options = std::vector<std::pair<std::string, double>>;

FloatModel spectrogram(const Options& options, ModelWriter::Shape sound = {10, 1}) {
  FloatModel model({std::move(sound)}, {{}});
  model.addCustom("AudioSpectrogram", {0}, {1}, flexMap(options));
  return model;
}

TEST(AudioTranslators, Spectrogram) {
  const ImportedGraph imported =
      import(spectrogram({{"window_size", 6}, {"stride", 2}, {"magnitude_squared", 1}}, {10, 2}));
  EXPECT_THAT(linesOf(*imported.model),
              ElementsAre("TRANSPOSE t0 {1,0} -> %",
                          "GATHER % 1 {0,1,2,3,4,5,2,3,4,5,6,7,4,5,6,7,8,9} -> %", "MUL % % 0 -> %",
                          "RESHAPE % {2,3,1,6} -> %", "RFFT2D % {1,8} -> %", "COMPLEX_ABS % -> %",
                          "MUL % % 0 -> %", "RESHAPE % {2,3,5} -> t1"));
  EXPECT_EQ(imported.outputs[0].dimensions, (Dimensions{2, 3, 5}));
}

TEST(AudioTranslators, WrongSpectrograms) {
  EXPECT_THAT(errorOf(spectrogram({{"window_size", 6}})), HasSubstr("\"stride\""));
  EXPECT_THAT(errorOf(spectrogram({{"window_size", 0}, {"stride", 1}})), HasSubstr("window_size"));
  EXPECT_THAT(errorOf(spectrogram({{"window_size", 11}, {"stride", 1}})), HasSubstr("11 samples"));
  EXPECT_THAT(errorOf(spectrogram({{"window_size", 1}, {"stride", 1}})), HasSubstr("1 samples"));
  EXPECT_THAT(errorOf(spectrogram({{"window_size", 6}, {"stride", 1}}, {10})),
              HasSubstr("samples by channels"));
  EXPECT_THAT(errorOf(spectrogram({{"window_size", 6}, {"stride", 1}}, {-1, 1})),
              HasSubstr("samples by channels"));
  // Its frames would take more memory than a file may ask for.
  EXPECT_NE(errorOf(spectrogram({{"window_size", 1 << 20}, {"stride", 1}}, {1 << 28, 1})),
            "imported");
}

ModelWriter verification(TensorType type, const Options& options) {
  ModelWriter model;
  model.addTensor(type, {2, 3}, type == TensorType::FLOAT16 ? 0.0f : 0.5f);
  for (int i = 0; i < 2; ++i) model.addTensor(TensorType::FLOAT32, {2, 3});
  model.addCustom("NumericVerify", {0, 1}, {2}, flexMap(options));
  model.setArguments({0, 1}, {2});
  return model;
}

TEST(AudioTranslators, NumericVerify) {
  EXPECT_THAT(translate(verification(TensorType::INT8, {{"tolerance", 5}, {"log_if_failed", 0}})),
              ElementsAre("DEQUANTIZE t0 -> %", "SUB % t1 0 -> t2"));
  EXPECT_THAT(
      translate(verification(TensorType::FLOAT16, {{"tolerance", 0.01}, {"log_if_failed", 1}})),
      ElementsAre("CAST t0 -> %", "SUB % t1 0 -> t2"));
  EXPECT_THAT(errorOf(verification(TensorType::INT8, {{"tolerance", 5}, {"log_if_failed", 1}})),
              HasSubstr("log_if_failed"));
}

}  // namespace
}  // namespace hearth::tflite
