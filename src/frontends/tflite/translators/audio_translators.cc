// SPDX-License-Identifier: Apache-2.0
// Custom operations of TFLite's networks for speech, and NumericVerify of its quantisation
// debugger.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <vector>

#include "frontends/tflite/translators/custom_options.h"
#include "frontends/tflite/translators/emitter.h"
#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

// What AudioSpectrogram does to its sound.
struct Spectrogram {
  uint32_t samples = 0;
  uint32_t channels = 0;
  uint32_t window = 0;
  uint32_t stride = 0;
  uint32_t frames = 0;
  uint32_t length = 0;  // of the transform
  uint32_t bins = 0;
  bool isSquared = false;
};

Result<Spectrogram> readSpectrogram(OperatorView& view, const graph::Dimensions& sound) {
  HEARTH_ASSIGN(const FlexAttributes options, customOptions(view));
  HEARTH_ASSIGN(const int32_t window, countOption(options, "window_size"));
  HEARTH_ASSIGN(const int32_t stride, countOption(options, "stride"));
  if (sound.size() != 2 || sound[0] == 0 || sound[1] == 0)
    return fail(ErrorCode::kUnsupported,
                "Its sound has the shape {}, it must be samples by channels of known numbers.",
                graph::describeDimensions(sound));
  Spectrogram s;
  s.samples = sound[0];
  s.channels = sound[1];
  s.window = static_cast<uint32_t>(window);
  s.stride = static_cast<uint32_t>(stride);
  s.isSquared = options.truth("magnitude_squared").value_or(false);
  if (s.window < 2 || s.samples < s.window)
    return fail(ErrorCode::kBadData, "Its window has {} samples of {}, two are the least.",
                s.window, s.samples);
  s.frames = 1 + (s.samples - s.window) / s.stride;
  s.length = std::bit_ceil(s.window);
  s.bins = s.length / 2 + 1;
  return s;
}

// The samples of all frames, [channels, frames, window].
Result<uint32_t> framesOf(OperatorView& view, uint32_t sound, const Spectrogram& s) {
  HEARTH_TRY(view.builder().model().charge(uint64_t{s.frames} * s.window * sizeof(int32_t)));
  std::vector<int32_t> places;
  for (uint32_t frame = 0; frame < s.frames; ++frame)
    for (uint32_t i = 0; i < s.window; ++i)
      places.push_back(static_cast<int32_t>(frame * s.stride + i));
  HEARTH_ASSIGN(const uint32_t indices, intConstant(view, {s.frames, s.window}, places));
  HEARTH_ASSIGN(const uint32_t order, view.builder().intTensor(std::array{1, 0}));
  HEARTH_ASSIGN(const uint32_t lines,
                view.emitNew(OperationType::kTranspose, {sound, order}, {s.channels, s.samples}));
  HEARTH_ASSIGN(const uint32_t axis, view.scalar(1));
  return view.emitNew(OperationType::kGather, {lines, axis, indices},
                      {s.channels, s.frames, s.window});
}

// A Hann window of one period.
Result<uint32_t> hannWindow(OperatorView& view, uint32_t size) {
  HEARTH_TRY(view.builder().model().charge(uint64_t{size} * sizeof(float)));
  std::vector<float> values;
  for (uint32_t i = 0; i < size; ++i)
    values.push_back(static_cast<float>(0.5 - 0.5 * std::cos(2 * std::numbers::pi * i / size)));
  return floatConstant(view, {size}, values);
}

// AudioSpectrogram becomes a GATHER of overlapping frames, their products with the window, and
// their transforms.
Status translateAudioSpectrogram(OperatorView& view, OperationType) {
  HEARTH_ASSIGN(const uint32_t sound, view.input(0));
  HEARTH_ASSIGN(const Spectrogram s, readSpectrogram(view, view.operand(sound).dimensions));
  HEARTH_ASSIGN(const uint32_t frames, framesOf(view, sound, s));
  HEARTH_ASSIGN(const uint32_t window, hannWindow(view, s.window));
  HEARTH_ASSIGN(const uint32_t none, view.scalar(kFuseNone));
  HEARTH_ASSIGN(const uint32_t windowed, view.emitNew(OperationType::kMul, {frames, window, none},
                                                      {s.channels, s.frames, s.window}));
  // RFFT2D transforms images: each frame is one of one row.
  const std::array rows = {static_cast<int32_t>(s.channels), static_cast<int32_t>(s.frames), 1,
                           static_cast<int32_t>(s.window)};
  HEARTH_ASSIGN(const uint32_t rowShape, view.builder().intTensor(rows));
  HEARTH_ASSIGN(const uint32_t images, view.emitNew(OperationType::kReshape, {windowed, rowShape},
                                                    {s.channels, s.frames, 1, s.window}));
  HEARTH_ASSIGN(const uint32_t lengths,
                view.builder().intTensor(std::array{1, static_cast<int32_t>(s.length)}));
  const graph::Dimensions lines = {s.channels, s.frames, 1, s.bins};
  HEARTH_ASSIGN(const uint32_t spectra, view.emitNew(OperationType::kRfft2d, {images, lengths},
                                                     lines, OperandType::kTensorComplex64));
  HEARTH_ASSIGN(uint32_t sizes, view.emitNew(OperationType::kComplexAbs, {spectra}, lines));
  if (s.isSquared) {
    HEARTH_ASSIGN(sizes, view.emitNew(OperationType::kMul, {sizes, sizes, none}, lines));
  }
  HEARTH_ASSIGN(const uint32_t output, outputOfShape(view, 0, {s.channels, s.frames, s.bins}));
  const std::array shape = {static_cast<int32_t>(s.channels), static_cast<int32_t>(s.frames),
                            static_cast<int32_t>(s.bins)};
  HEARTH_ASSIGN(const uint32_t outputShape, view.builder().intTensor(shape));
  return view.emit(OperationType::kReshape, {sizes, outputShape}, {output});
}

// What Mfcc makes of a spectrogram [channels, frames, bins] of squared magnitudes.
struct Cepstrum {
  uint32_t channels = 0;
  uint32_t frames = 0;
  uint32_t bins = 0;
  std::optional<double> rate;  // in hertz; none where a run gives it
  double lowest = 0;           // frequencies, in hertz
  double highest = 0;
  uint32_t bands = 0;
  uint32_t coefficients = 0;

  double binWidth() const { return 0.5 * *rate / (bins - 1); }
};

Result<Cepstrum> readCepstrum(OperatorView& view, uint32_t spectrogramInput) {
  const graph::Dimensions spectrogram = view.operand(spectrogramInput).dimensions;
  if (spectrogram.size() != 3 || spectrogram[2] < 2)
    return fail(ErrorCode::kUnsupported,
                "Its spectrogram has the shape {}, it must be channels by frames by two bins or "
                "more.",
                graph::describeDimensions(spectrogram));
  HEARTH_ASSIGN(const uint32_t rateInput, view.input(1));
  const graph::Operand& rateOperand = view.operand(rateInput);
  const bool isOne =
      std::ranges::all_of(rateOperand.dimensions, [](uint32_t size) { return size == 1; });
  if (!isOne || rateOperand.type != OperandType::kTensorInt32)
    return fail(ErrorCode::kUnsupported, "Its sample rate is {}, it must be one 32-bit integer.",
                graph::describe(rateOperand));
  HEARTH_ASSIGN(const FlexAttributes options, customOptions(view));
  HEARTH_ASSIGN(const int32_t bands, countOption(options, "filterbank_channel_count"));
  HEARTH_ASSIGN(const int32_t coefficients, countOption(options, "dct_coefficient_count"));
  Cepstrum c;
  c.channels = spectrogram[0];
  c.frames = spectrogram[1];
  c.bins = spectrogram[2];
  c.bands = static_cast<uint32_t>(bands);
  c.coefficients = static_cast<uint32_t>(coefficients);
  if (rateOperand.isConstant()) {
    HEARTH_ASSIGN(c.rate, view.constantInt(1));
  }
  // TFLite takes limits as whole numbers.
  c.lowest = std::trunc(options.number("lower_frequency_limit").value_or(0));
  c.highest = std::trunc(options.number("upper_frequency_limit").value_or(0));
  if (!(c.lowest >= 0 && c.lowest < c.highest))
    return fail(ErrorCode::kBadData, "Its frequencies are from {} to {} Hz.", c.lowest, c.highest);
  if (c.rate && (*c.rate <= 0 || c.highest >= c.binWidth() * static_cast<double>(c.bins)))
    return fail(ErrorCode::kBadData,
                "Its frequencies from {} to {} Hz are no part of what a sample rate of {} Hz has.",
                c.lowest, c.highest, *c.rate);
  if (coefficients > bands)
    return fail(ErrorCode::kBadData, "It has {} coefficients of {} bands.", coefficients, bands);
  return c;
}

double melOf(double frequency) {
  return 1127 * std::log1p(frequency / 700);
}

// [bands, bins]: triangles whose corners are the centres of the neighbouring bands, at equal
// distances on the mel scale. Bin 0 and those less than half a bin above the lowest frequency are
// left out.
Result<uint32_t> filterBank(OperatorView& view, const Cepstrum& c) {
  HEARTH_TRY(view.builder().model().charge(uint64_t{c.bands} * c.bins * sizeof(float)));
  std::vector<float> weights(size_t{c.bands} * c.bins);
  const double spacing = (melOf(c.highest) - melOf(c.lowest)) / (c.bands + 1.0);
  const double last = std::floor(c.highest / c.binWidth());
  for (double bin = std::floor(1.5 + c.lowest / c.binWidth()); bin <= last; ++bin) {
    const double place = (melOf(bin * c.binWidth()) - melOf(c.lowest)) / spacing;
    for (uint32_t band = 0; band < c.bands; ++band) {
      const double weight = 1 - std::abs(place - (band + 1.0));
      if (weight > 0)
        weights[size_t{band} * c.bins + static_cast<size_t>(bin)] = static_cast<float>(weight);
    }
  }
  return floatConstant(view, {c.bands, c.bins}, weights);
}

// The same for a sample rate that a run gives, computed from it with 32-bit numbers.
Result<uint32_t> computedFilterBank(OperatorView& view, const Cepstrum& c) {
  HEARTH_TRY(view.builder().model().charge((uint64_t{c.bins} * 2 + c.bands) * sizeof(float)));
  const double spacing = (melOf(c.highest) - melOf(c.lowest)) / (c.bands + 1.0);
  std::vector<float> places(c.bins);  // of the bins, as parts of the rate
  std::vector<float> lower(c.bins);   // half a bin below
  std::vector<float> centres(c.bands);
  for (uint32_t i = 0; i < c.bins; ++i) {
    places[i] = static_cast<float>(0.5 * i / (c.bins - 1));
    lower[i] = static_cast<float>(0.5 * (i - 0.5) / (c.bins - 1));
  }
  for (uint32_t i = 0; i < c.bands; ++i)
    centres[i] = static_cast<float>(melOf(c.lowest) / spacing + i + 1);
  const graph::Dimensions line = {1, c.bins};
  const graph::Dimensions bank = {c.bands, c.bins};
  HEARTH_ASSIGN(const uint32_t placesOperand, floatConstant(view, line, places));
  HEARTH_ASSIGN(const uint32_t lowerOperand, floatConstant(view, line, lower));
  HEARTH_ASSIGN(const uint32_t centresOperand, floatConstant(view, {c.bands, 1}, centres));
  HEARTH_ASSIGN(const uint32_t one, view.floatTensor(1.0f));
  HEARTH_ASSIGN(const uint32_t zero, view.floatTensor(0.0f));
  HEARTH_ASSIGN(const uint32_t perHertz, view.floatTensor(1.0f / 700));
  HEARTH_ASSIGN(const uint32_t perBand, view.floatTensor(static_cast<float>(1127 / spacing)));
  HEARTH_ASSIGN(const uint32_t lowest, view.floatTensor(static_cast<float>(c.lowest)));

  Emitter emitter(view);
  HEARTH_ASSIGN(const uint32_t rateInput, view.input(1));
  HEARTH_ASSIGN(const uint32_t whole, emitter.reshape(rateInput, {1, 1}));
  HEARTH_ASSIGN(const uint32_t rate, view.emitNew(OperationType::kCast, {whole}, {1, 1}));
  // The mel scale, in units of the distance between two bands.
  HEARTH_ASSIGN(uint32_t mel, emitter.arithmetic(OperationType::kMul, placesOperand, rate, line));
  HEARTH_ASSIGN(mel, emitter.arithmetic(OperationType::kMul, mel, perHertz, line));
  HEARTH_ASSIGN(mel, emitter.arithmetic(OperationType::kAdd, mel, one, line));
  HEARTH_ASSIGN(mel, emitter.plain(OperationType::kLog, {mel}, line));
  HEARTH_ASSIGN(mel, emitter.arithmetic(OperationType::kMul, mel, perBand, line));
  // Triangles around the centres of the bands.
  HEARTH_ASSIGN(uint32_t weights,
                emitter.arithmetic(OperationType::kSub, mel, centresOperand, bank));
  HEARTH_ASSIGN(weights, emitter.plain(OperationType::kAbs, {weights}, bank));
  HEARTH_ASSIGN(weights, emitter.arithmetic(OperationType::kSub, one, weights, bank));
  HEARTH_ASSIGN(weights, emitter.plain(OperationType::kRelu, {weights}, bank));
  // A bin counts where it is more than half a bin above the lowest frequency.
  HEARTH_ASSIGN(const uint32_t edges,
                emitter.arithmetic(OperationType::kMul, lowerOperand, rate, line));
  HEARTH_ASSIGN(const uint32_t counts, view.emitNew(OperationType::kGreater, {edges, lowest}, line,
                                                    OperandType::kTensorBool8));
  return view.emitNew(OperationType::kSelectV2, {counts, weights, zero}, bank);
}

// [coefficients, bands]: the first rows of an orthogonal DCT-II, except that the first is not
// divided by the square root of two.
Result<uint32_t> cosineTransform(OperatorView& view, const Cepstrum& c) {
  HEARTH_TRY(view.builder().model().charge(uint64_t{c.coefficients} * c.bands * sizeof(float)));
  std::vector<float> cosines;
  for (uint32_t i = 0; i < c.coefficients; ++i)
    for (uint32_t band = 0; band < c.bands; ++band)
      cosines.push_back(static_cast<float>(
          std::sqrt(2.0 / c.bands) * std::cos(std::numbers::pi / c.bands * i * (band + 0.5))));
  return floatConstant(view, {c.coefficients, c.bands}, cosines);
}

// Mfcc becomes magnitudes, their sums over the bands, logarithms of these, and a transform.
Status translateMfcc(OperatorView& view, OperationType type) {
  constexpr float kLeast = 1e-12f;  // of a band, before the logarithm
  HEARTH_ASSIGN(const uint32_t spectrogram, floatInput(view, 0));
  HEARTH_ASSIGN(const Cepstrum c, readCepstrum(view, spectrogram));
  const uint64_t lineCount = uint64_t{c.channels} * c.frames;
  if (lineCount > std::numeric_limits<int32_t>::max() ||
      c.bins > static_cast<uint32_t>(std::numeric_limits<int32_t>::max()))
    return fail(ErrorCode::kBadData, "Its spectrogram has {} frames of {} bins.", lineCount,
                c.bins);
  const auto lines = static_cast<uint32_t>(lineCount);
  HEARTH_ASSIGN(const uint32_t bank, c.rate ? filterBank(view, c) : computedFilterBank(view, c));
  HEARTH_ASSIGN(const uint32_t cosines, cosineTransform(view, c));
  const std::array flat = {static_cast<int32_t>(lines), static_cast<int32_t>(c.bins)};
  HEARTH_ASSIGN(const uint32_t flatShape, view.builder().intTensor(flat));
  HEARTH_ASSIGN(const uint32_t squares,
                view.emitNew(OperationType::kReshape, {spectrogram, flatShape}, {lines, c.bins}));
  HEARTH_ASSIGN(const uint32_t sizes,
                view.emitNew(OperationType::kSqrt, {squares}, {lines, c.bins}));
  HEARTH_ASSIGN(const uint32_t noBias, view.builder().omitted(OperandType::kTensorFloat32));
  HEARTH_ASSIGN(const uint32_t none, view.scalar(kFuseNone));
  HEARTH_ASSIGN(const uint32_t sums,
                view.emitNew(type, {sizes, bank, noBias, none}, {lines, c.bands}));
  HEARTH_ASSIGN(const uint32_t least, view.floatTensor(kLeast));
  HEARTH_ASSIGN(const uint32_t bounded,
                view.emitNew(OperationType::kMaximum, {sums, least}, {lines, c.bands}));
  HEARTH_ASSIGN(const uint32_t logarithms,
                view.emitNew(OperationType::kLog, {bounded}, {lines, c.bands}));
  HEARTH_ASSIGN(const uint32_t found,
                view.emitNew(type, {logarithms, cosines, noBias, none}, {lines, c.coefficients}));
  const std::array shape = {static_cast<int32_t>(c.channels), static_cast<int32_t>(c.frames),
                            static_cast<int32_t>(c.coefficients)};
  HEARTH_ASSIGN(const uint32_t outputShape, view.builder().intTensor(shape));
  HEARTH_ASSIGN(const uint32_t output,
                outputOfShape(view, 0, {c.channels, c.frames, c.coefficients}));
  return view.emit(OperationType::kReshape, {found, outputShape}, {output});
}

// The differences between quantised values and the floats that they stand for.
Status translateNumericVerify(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const FlexAttributes options, customOptions(view));
  // TFLite checks the differences from this tolerance on, and ends the run.
  constexpr double kLeastTolerance = 0.1;
  if (options.truth("log_if_failed").value_or(false) &&
      options.number("tolerance").value_or(0) >= kLeastTolerance)
    return fail(ErrorCode::kUnsupported,
                "It ends runs whose differences exceed its tolerance, which is not supported; "
                "without \"log_if_failed\" it gives the differences.");
  HEARTH_ASSIGN(const uint32_t values, view.input(0));
  HEARTH_ASSIGN(const uint32_t expected, view.input(1));
  uint32_t floats = values;
  if (view.operand(values).type == OperandType::kTensorFloat16) {
    HEARTH_ASSIGN(floats, view.floatsLike(values));
    HEARTH_TRY(view.emit(OperationType::kCast, {values}, {floats}));
  } else {
    HEARTH_ASSIGN(floats, view.dequantized(values));
  }
  HEARTH_ASSIGN(const uint32_t none, view.scalar(kFuseNone));
  HEARTH_ASSIGN(const uint32_t output, outputOfShape(view, 0, view.operand(values).dimensions));
  return view.emit(type, {floats, expected, none}, {output});
}

}  // namespace

std::span<const CustomTranslatorEntry> audioTranslators() {
  static constexpr CustomTranslatorEntry kTranslators[] = {
      {"AudioSpectrogram",
       {BuiltinOperator::CUSTOM, translateAudioSpectrogram, OperationType::kRfft2d}},
      {"Mfcc", {BuiltinOperator::CUSTOM, translateMfcc, OperationType::kFullyConnected}},
      {"NumericVerify", {BuiltinOperator::CUSTOM, translateNumericVerify, OperationType::kSub}},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
