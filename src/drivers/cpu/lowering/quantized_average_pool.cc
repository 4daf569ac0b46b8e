// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/quantized_average_pool.h"

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include "base/vector_dispatch.h"
#include "drivers/cpu/kernels/function_kernel.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

struct AveragePool {
  Pooling pool;
  ops::QuantizedRange steps{};
  ValueId source = 0, destination = 0;
};

// The inputs that a window covers along one side.
struct Span {
  size_t begin = 0, end = 0;
};

Span covered(size_t position, uint32_t stride, uint32_t before, uint32_t filter, size_t size) {
  const auto first = static_cast<int64_t>(position * stride) - before;
  const auto limit = static_cast<int64_t>(size);
  return {static_cast<size_t>(std::clamp<int64_t>(first, 0, limit)),
          static_cast<size_t>(std::clamp<int64_t>(first + filter, 0, limit))};
}

// Sums of this many 8-bit numbers fit into 16 bits.
constexpr size_t kFew = 128;

// Adds up the pixels of a window, channel by channel.
template <typename T, typename Sum>
void addPixels(std::span<const T* const> pixels, size_t channels, Sum* sums) {
  base::onWidestVectors([=]() HEARTH_INLINE {
    std::fill_n(sums, channels, Sum{0});
    size_t i = 0;
    // Four pixels are added at a time, so that sums are read and written once for them.
    for (; i + 4 <= pixels.size(); i += 4) {
      const T* const a = pixels[i];
      const T* const b = pixels[i + 1];
      const T* const c = pixels[i + 2];
      const T* const d = pixels[i + 3];
#pragma GCC ivdep
      for (size_t n = 0; n < channels; ++n)
        sums[n] = static_cast<Sum>(sums[n] + a[n] + b[n] + c[n] + d[n]);
    }
    for (; i < pixels.size(); ++i) {
      const T* const pixel = pixels[i];
#pragma GCC ivdep
      for (size_t n = 0; n < channels; ++n) sums[n] = static_cast<Sum>(sums[n] + pixel[n]);
    }
  });
}

// Writes the means of sums over `count` pixels, rounded half away from zero for any zero point.
template <typename T, typename Sum>
void writeMeans(const Sum* sums, size_t count, size_t channels, ops::QuantizedRange steps,
                T* target) {
  using Real = std::conditional_t<sizeof(Sum) == 2, float, double>;
  // The mean is (sum + count / 2) / count in integers. Another half added to the numerator keeps
  // the quotient away from whole numbers, so that the product, which is a little wrong, truncates
  // to the same mean.
  const Real factor = Real{1} / static_cast<Real>(count);
  const size_t lower = count / 2;
  const Real half = (static_cast<Real>(lower) + Real{0.5}) * factor;
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t c = 0; c < channels; ++c) {
      const int32_t sum = sums[c];
      const int32_t magnitude = sum < 0 ? -sum : sum;
      const auto rounded = static_cast<int32_t>(static_cast<Real>(magnitude) * factor + half);
      const int32_t mean = std::max(sum < 0 ? -rounded : rounded, steps.lowest);
      target[c] = static_cast<T>(std::min(mean, steps.highest));
    }
  });
}

template <typename T, typename Sum>
void poolLine(const AveragePool& a, size_t line, const T* source, T* target) {
  const Pooling& p = a.pool;
  const size_t y = line % p.outputHeight;
  const T* image = source + line / p.outputHeight * p.inputHeight * p.inputWidth * p.channels;
  const Span rows = covered(y, p.strideHeight, p.top, p.filterHeight, p.inputHeight);
  std::vector<Sum> sums(p.channels);
  std::vector<const T*> pixels;
  for (size_t x = 0; x < p.outputWidth; ++x) {
    const Span columns = covered(x, p.strideWidth, p.left, p.filterWidth, p.inputWidth);
    pixels.clear();
    for (size_t row = rows.begin; row < rows.end; ++row)
      for (size_t column = columns.begin; column < columns.end; ++column)
        pixels.push_back(image + (row * p.inputWidth + column) * p.channels);
    addPixels<T, Sum>(pixels, p.channels, sums.data());
    writeMeans(sums.data(), pixels.size(), p.channels, a.steps,
               target + (line * p.outputWidth + x) * p.channels);
  }
}

template <typename T>
void poolLines(const AveragePool& a, size_t begin, size_t end, const T* source, T* target) {
  const bool isFew = size_t{a.pool.filterHeight} * a.pool.filterWidth <= kFew;
  for (size_t line = begin; line < end; ++line) {
    if (isFew)
      poolLine<T, int16_t>(a, line, source, target);
    else
      poolLine<T, int32_t>(a, line, source, target);
  }
}

}  // namespace

Result<bool> addQuantizedAveragePool(PlanBuilder* builder, const Pooling& pooling) {
  // Keeps sums within 32 bits.
  constexpr uint64_t kMostInputs = uint64_t{1} << 22;
  if (uint64_t{pooling.filterHeight} * pooling.filterWidth > kMostInputs)
    return builder->decline("its window has more than 2^22 places");
  const graph::Operand& input = builder->operand(pooling.input);
  const graph::Operand& output = builder->operand(pooling.output);
  AveragePool a;
  a.pool = pooling;
  a.steps = ops::quantizedActivationRange(pooling.activation, output);
  a.source = builder->read(pooling.input);
  a.destination = builder->write(pooling.output);
  const bool isSigned = input.type == graph::OperandType::kTensorQuant8AsymmSigned;
  builder->add("own", {a.source}, {a.destination}).create = [a, isSigned] {
    return makeFunctionKernel([a, isSigned](const KernelRun& run) -> Status {
      const Pooling& p = a.pool;
      const uint64_t work = uint64_t{p.outputWidth} * p.channels * p.filterHeight * p.filterWidth;
      threads::forRanges(
          run.pool, p.batch * p.outputHeight, threads::grainOf(work),
          [&](uint64_t begin, uint64_t end) {
            if (isSigned)
              poolLines(a, begin, end, run.at<int8_t>(a.source), run.at<int8_t>(a.destination));
            else
              poolLines(a, begin, end, run.at<uint8_t>(a.source), run.at<uint8_t>(a.destination));
          });
      return {};
    });
  };
  return true;
}

}  // namespace hearth::cpu
