// SPDX-License-Identifier: Apache-2.0
// Custom operations of TFLite's networks for speech, and NumericVerify of its quantisation
// debugger.
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

#include "frontends/tflite/translators/custom_options.h"
#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

template <typename T>
Result<uint32_t> constantOf(OperatorView& view, OperandType type, graph::Dimensions dimensions,
                            const std::vector<T>& values) {
  graph::Operand like;
  like.type = type;
  like.dimensions = std::move(dimensions);
  return view.builder().constantTensor(
      std::move(like),
      {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)});
}

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
  HEARTH_ASSIGN(const uint32_t indices,
                constantOf(view, OperandType::kTensorInt32, {s.frames, s.window}, places));
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
  return constantOf(view, OperandType::kTensorFloat32, {size}, values);
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
      {"NumericVerify", {BuiltinOperator::CUSTOM, translateNumericVerify, OperationType::kSub}},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
