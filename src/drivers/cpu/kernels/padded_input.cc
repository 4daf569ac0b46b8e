// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/padded_input.h"

#include <algorithm>
#include <cstring>

#include "drivers/cpu/microkernels/x86/avx512/qs8_gemm.h"

namespace hearth::cpu {
namespace {

// Pixels from the first to the last one under any window, of one dimension.
uint64_t extentOf(uint64_t outputs, uint64_t stride, uint64_t kernel, uint64_t dilation) {
  return (outputs - 1) * stride + (kernel - 1) * dilation + 1;
}

}  // namespace

std::optional<PaddedInput> PaddedInput::make(const Convolution& g, int32_t inputZero,
                                             size_t mostBytes) {
  const uint64_t height =
      extentOf(g.outputHeight, g.strideHeight, g.kernelHeight, g.dilationHeight);
  const uint64_t width = extentOf(g.outputWidth, g.strideWidth, g.kernelWidth, g.dilationWidth);
  uint64_t left = mostBytes;
  for (const uint64_t size : {uint64_t{g.batch}, height, width, uint64_t{g.groupInputChannels}}) {
    if (size == 0 || size > left) return std::nullopt;
    left /= size;
  }
  return PaddedInput(g, inputZero, height, width);
}

PaddedInput::PaddedInput(const Convolution& convolution, int32_t inputZero, size_t height,
                         size_t width)
    : geometry_(convolution),
      fill_(static_cast<uint8_t>(inputZero + 128)),
      height_(height),
      width_(width) {
  const Convolution& g = geometry_;
  places_.reserve(size_t{g.kernelHeight} * g.kernelWidth);
  for (size_t y = 0; y < g.kernelHeight; ++y)
    for (size_t x = 0; x < g.kernelWidth; ++x)
      places_.push_back(y * g.dilationHeight * lineBytes() +
                        x * g.dilationWidth * g.groupInputChannels);
}

Convolution PaddedInput::geometry() const {
  Convolution g = geometry_;
  g.inputHeight = height_;
  g.inputWidth = width_;
  g.top = g.bottom = g.left = g.right = 0;
  return g;
}

void PaddedInput::fill(const int8_t* source, size_t first, size_t last, uint8_t* target) const {
  const Convolution& g = geometry_;
  const size_t left = std::min<size_t>(g.left, width_);
  const size_t inside = std::min(g.inputWidth, width_ - left);
  const size_t right = width_ - left - inside;
  for (size_t line = first; line < last; ++line) {
    uint8_t* to = target + line * lineBytes();
    const auto y = static_cast<int64_t>(line % height_) - int64_t{g.top};
    if (y < 0 || y >= static_cast<int64_t>(g.inputHeight)) {
      std::memset(to, fill_, lineBytes());
      continue;
    }
    const size_t from = (line / height_ * g.inputHeight + static_cast<size_t>(y)) * g.inputWidth;
    std::memset(to, fill_, left * g.groupInputChannels);
    to += left * g.groupInputChannels;
    makeUnsigned(source + from * g.groupInputChannels, inside * g.groupInputChannels, to);
    std::memset(to + inside * g.groupInputChannels, fill_, right * g.groupInputChannels);
  }
}

void PaddedInput::findWindows(const uint8_t* input, size_t first, size_t count,
                              const uint8_t** windows) const {
  const Convolution& g = geometry_;
  const size_t step = g.strideWidth * g.groupInputChannels;
  while (count > 0) {
    const size_t line = first / g.outputWidth;
    const size_t x = first % g.outputWidth;
    const size_t y = line / g.outputHeight * height_ + line % g.outputHeight * g.strideHeight;
    const size_t ofLine = std::min(count, g.outputWidth - x);
    const uint8_t* const at = input + y * lineBytes() + x * step;
    for (size_t i = 0; i < ofLine; ++i) windows[i] = at + i * step;
    windows += ofLine;
    first += ofLine;
    count -= ofLine;
  }
}

}  // namespace hearth::cpu
