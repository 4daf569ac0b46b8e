// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

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

// A Hann window of six samples, whose sum is 3, and whose sum of every second one with its sign is
// 0.
TEST(AudioTranslators, FramesAreMultipliedByTheWindow) {
  const FloatModel model =
      spectrogram({{"window_size", 6}, {"stride", 2}, {"magnitude_squared", 1}}, {10, 1});
  for (const auto kernels : {ops::KernelSet::kFast, ops::KernelSet::kReference}) {
    const auto found = outputsOf(model, {std::vector<float>(10, 1.0f)}, kernels);
    ASSERT_EQ(found.at(0).size(), 3U * 5);
    for (size_t frame = 0; frame < 3; ++frame) {
      EXPECT_NEAR(found[0][frame * 5], 9.0f, 1e-5f) << frame;
      EXPECT_NEAR(found[0][frame * 5 + 4], 0.0f, 1e-5f) << frame;
    }
  }
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

FloatModel cepstrum(const Options& options, ModelWriter::Shape spectrogram, int32_t rate = 16000) {
  FloatModel model({std::move(spectrogram)}, {{}});
  model.addCustom("Mfcc", {0, model.addConstant<int32_t>(TensorType::INT32, {}, {rate})}, {1},
                  flexMap(options));
  return model;
}

Options cepstrumOptions(double lowest = 20, double highest = 4000, double bands = 40,
                        double coefficients = 13) {
  return {{"lower_frequency_limit", lowest},
          {"upper_frequency_limit", highest},
          {"filterbank_channel_count", bands},
          {"dct_coefficient_count", coefficients}};
}

double melOf(double frequency) {
  return 1127 * std::log1p(frequency / 700);
}

// The coefficients of one frame: each bin counts for the bands on both sides of it, the more the
// nearer it is to the middle of a band.
std::vector<double> coefficientsOf(const std::vector<float>& squares, double rate, double lowest,
                                   double highest, int bands, int count) {
  const double width = rate / 2 / (static_cast<double>(squares.size()) - 1);
  const double spacing = (melOf(highest) - melOf(lowest)) / (bands + 1);
  std::vector<double> sums(bands + 2);
  for (int bin = static_cast<int>(1.5 + lowest / width); bin <= static_cast<int>(highest / width);
       ++bin) {
    const double place = (melOf(bin * width) - melOf(lowest)) / spacing;
    const int below = static_cast<int>(place);
    const double size = std::sqrt(double{squares[bin]});
    sums[below] += size * (below + 1 - place);
    if (below + 1 < bands + 2) sums[below + 1] += size * (place - below);
  }
  std::vector<double> coefficients;
  for (int i = 0; i < count; ++i) {
    double sum = 0;
    for (int band = 0; band < bands; ++band)
      sum += std::cos(i * std::numbers::pi / bands * (band + 0.5)) *
             std::log(std::max(sums[band + 1], 1e-12));
    coefficients.push_back(std::sqrt(2.0 / bands) * sum);
  }
  return coefficients;
}

TEST(AudioTranslators, CepstraOfSpectrograms) {
  std::vector<float> squares;
  for (int i = 0; i < 2 * 3 * 257; ++i)
    squares.push_back(static_cast<float>(std::pow(std::sin(0.1 * i) + 1.1, 4) * 50));
  // A silent frame.
  std::fill_n(squares.begin() + 257, 257, 0.0f);
  for (const auto kernels : {ops::KernelSet::kFast, ops::KernelSet::kReference}) {
    const auto found = outputsOf(cepstrum(cepstrumOptions(), {2, 3, 257}), {squares}, kernels);
    ASSERT_EQ(found.at(0).size(), 2U * 3 * 13);
    for (size_t frame = 0; frame < 6; ++frame) {
      const auto begin = squares.begin() + static_cast<std::ptrdiff_t>(frame * 257);
      const auto expected =
          coefficientsOf(std::vector(begin, begin + 257), 16000, 20, 4000, 40, 13);
      for (size_t i = 0; i < 13; ++i)
        EXPECT_NEAR(found[0][frame * 13 + i], expected[i], 2e-4) << frame << ", " << i;
    }
  }
}

TEST(AudioTranslators, CepstraAtTheSampleRateOfARun) {
  FloatModel model({{1, 1, 129}, {1}}, {{}});
  const int32_t rate = model.addTensor(TensorType::INT32, {1});
  model.addOperator(BuiltinOperator::CAST, {1}, {rate});
  model.addCustom("Mfcc", {0, rate}, {2}, flexMap(cepstrumOptions(200, 3500, 20)));
  std::vector<float> squares;
  for (int i = 0; i < 129; ++i)
    squares.push_back(static_cast<float>(std::pow(std::sin(0.1 * i) + 1.1, 4) * 50));
  for (const float hertz : {8000.0f, 16000.0f, 44100.0f}) {
    const auto expected = coefficientsOf(squares, hertz, 200, 3500, 20, 13);
    for (const auto kernels : {ops::KernelSet::kFast, ops::KernelSet::kReference}) {
      const auto found = outputsOf(model, {squares, {hertz}}, kernels);
      ASSERT_EQ(found.at(0).size(), 13U);
      for (size_t i = 0; i < 13; ++i)
        EXPECT_NEAR(found[0][i], expected[i], 2e-3) << hertz << ", " << i;
    }
  }
}

TEST(AudioTranslators, WrongCepstra) {
  EXPECT_EQ(import(cepstrum(cepstrumOptions(), {2, 3, 257})).outputs[0].dimensions,
            (Dimensions{2, 3, 13}));
  EXPECT_THAT(errorOf(cepstrum(cepstrumOptions(), {3, 257})), HasSubstr("[3,257]"));
  EXPECT_THAT(errorOf(cepstrum(cepstrumOptions(), {1, 3, 1})), HasSubstr("two bins"));
  EXPECT_THAT(errorOf(cepstrum(cepstrumOptions(), {1, 3, 257}, 0)), HasSubstr("rate of 0 Hz"));
  EXPECT_THAT(errorOf(cepstrum(cepstrumOptions(), {1, 3, 257}, 7900)), HasSubstr("7900 Hz"));
  EXPECT_THAT(errorOf(cepstrum(cepstrumOptions(4000, 4000), {1, 3, 257})), HasSubstr("4000"));
  EXPECT_THAT(errorOf(cepstrum(cepstrumOptions(20, 4000, 12), {1, 3, 257})),
              HasSubstr("13 coefficients of 12"));
  EXPECT_THAT(errorOf(cepstrum(cepstrumOptions(20, 4000, 0), {1, 3, 257})),
              HasSubstr("filterbank_channel_count"));
  EXPECT_NE(errorOf(cepstrum(cepstrumOptions(20, 4000, 1 << 30), {1, 3, 257})), "imported");
  ModelWriter model;
  model.addTensor(TensorType::FLOAT32, {1, 3, 257});
  model.addTensor(TensorType::INT32, {2});
  model.addTensor(TensorType::FLOAT32, {});
  model.addCustom("Mfcc", {0, 1}, {2}, flexMap(cepstrumOptions()));
  model.setArguments({0, 1}, {2});
  EXPECT_THAT(errorOf(model), HasSubstr("sample rate"));
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
