// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/platform/kernel_traits.h"

#include <cmath>
#include <cstring>

#include "base/trace.h"
#include "drivers/cpu/platform/read_slack.h"
#include "drivers/cpu/platform/xnn_operator.h"
#include "threads/gemm_hint.h"

namespace hearth::cpu {
namespace {

// Small pseudo-random bytes, the same at every start.
class Bytes {
 public:
  int8_t next() {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<int8_t>(state_ >> 24);
  }

 private:
  uint32_t state_ = 12345;
};

struct Shape {
  uint32_t kernel, stride, outputHeight, outputWidth;
};

constexpr uint32_t kInputChannels = 80;  // kernels go wrong only with more than 64
constexpr uint32_t kOutputChannels = 24;
constexpr float kScale = 1.0f / 256;

// Whether an int8 convolution with indirect GEMM computes its first and last pixels right.
Result<bool> isInt8ConvolutionRight(const Shape& shape, bool guardOneRowTail) {
  const uint32_t inputHeight = (shape.outputHeight - 1) * shape.stride + shape.kernel;
  const uint32_t inputWidth = (shape.outputWidth - 1) * shape.stride + shape.kernel;
  const uint32_t pixels = shape.outputHeight * shape.outputWidth;
  const uint32_t taps = shape.kernel * shape.kernel;
  Bytes bytes;
  std::vector<int8_t> input(inputHeight * inputWidth * kInputChannels + kReadSlack);
  std::vector<int8_t> filter(kOutputChannels * taps * kInputChannels);
  for (int8_t& value : input) value = bytes.next();
  for (int8_t& value : filter) value = static_cast<int8_t>(bytes.next() / 16);
  const std::vector<int32_t> bias(kOutputChannels, 77);
  const std::vector<float> scales(kOutputChannels + XNN_EXTRA_QUANTIZATION_PARAMS, kScale);
  std::vector<int8_t> output((pixels + 2) * kOutputChannels);

  xnn_operator_t raw = nullptr;
  xnn_status status = xnn_create_convolution2d_nhwc_qs8_qc8w(
      0, 0, 0, 0, shape.kernel, shape.kernel, shape.stride, shape.stride, 1, 1, 1, kInputChannels,
      kOutputChannels, kInputChannels, kOutputChannels, 3, 1.0f, scales.data(), filter.data(),
      bias.data(), -5, 1.0f, -128, 127, 0, nullptr, nullptr, &raw);
  if (status != xnn_status_success) return std::unexpected(xnnError(status, "the self-test"));
  const XnnOperator op(raw);
  size_t workspace = 0, alignment = 0, height = 0, width = 0;
  status = xnn_reshape_convolution2d_nhwc_qs8_qc8w(raw, 1, inputHeight, inputWidth, &workspace,
                                                   &alignment, &height, &width, nullptr);
  if (status == xnn_status_success)
    status = xnn_setup_convolution2d_nhwc_qs8_qc8w(raw, nullptr, input.data(), output.data());
  if (status == xnn_status_success) {
    threads::GemmHint hint;
    hint.guardOneRowTail = guardOneRowTail;
    hint.columns = kOutputChannels;
    const threads::GemmHintScope scope(hint);
    status = xnn_run_operator(raw, nullptr);
  }
  if (status != xnn_status_success) return std::unexpected(xnnError(status, "the self-test"));

  for (const uint32_t pixel : {0u, pixels - 2, pixels - 1}) {
    const uint32_t y = pixel / shape.outputWidth * shape.stride;
    const uint32_t x = pixel % shape.outputWidth * shape.stride;
    for (uint32_t o = 0; o < kOutputChannels; ++o) {
      int32_t sum = bias[o];
      for (uint32_t tap = 0; tap < taps; ++tap) {
        const int8_t* in = &input[((y + tap / shape.kernel) * inputWidth + x + tap % shape.kernel) *
                                  kInputChannels];
        const int8_t* weight = &filter[(o * taps + tap) * kInputChannels];
        for (uint32_t i = 0; i < kInputChannels; ++i) sum += (in[i] - 3) * weight[i];
      }
      const double expected =
          std::clamp(std::nearbyint(static_cast<double>(sum) * kScale) - 5, -128.0, 127.0);
      if (std::abs(expected - output[pixel * kOutputChannels + o]) > 1) return false;
    }
  }
  return true;
}

// Shapes whose output has one pixel more than a multiple of 16, so that the last tile has one row.
constexpr Shape kTellingShapes[] = {{3, 1, 1, 17}, {1, 2, 1, 17}, {3, 1, 7, 7}, {3, 2, 1, 17}};

}  // namespace

SelfTestResult::SelfTestResult(const KernelTraits& found) : traits(found) {
  if (traits.avoidInt8OneRowTail)
    routedAround.push_back("int8 convolution with one row in the last tile, not run here");
  if (traits.guardInt8OneRowTail)
    routedAround.push_back("int8 convolution, last row tile of one row");
}

Status initializeXnnpack() {
  static const xnn_status status = [] {
    const base::TraceSpan span("start", "start XNNPACK");
    return xnn_initialize(nullptr);
  }();
  if (status == xnn_status_success) return {};
  return fail(ErrorCode::kOpFailed, "XNNPACK does not start on this CPU (status {}).",
              static_cast<int>(status));
}

Result<SelfTestResult> runSelfTest() {
  const base::TraceSpan span("start", "self-test");
  HEARTH_TRY(initializeXnnpack());
  KernelTraits traits;
  for (const Shape& shape : kTellingShapes) {
    HEARTH_ASSIGN(const bool isRight, isInt8ConvolutionRight(shape, false));
    if (!isRight) traits.guardInt8OneRowTail = true;
  }
  if (!traits.guardInt8OneRowTail) return SelfTestResult(traits);
  for (const Shape& shape : kTellingShapes) {
    HEARTH_ASSIGN(const bool isRight, isInt8ConvolutionRight(shape, true));
    if (!isRight) traits.avoidInt8OneRowTail = true;
  }
  if (traits.avoidInt8OneRowTail) traits.guardInt8OneRowTail = false;
  return SelfTestResult(traits);
}

}  // namespace hearth::cpu
