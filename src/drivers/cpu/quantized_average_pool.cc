// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/quantized_average_pool.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/vector_dispatch.h"
#include "drivers/cpu/function_kernel.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

struct AveragePool {
  Pooling pool;
  int32_t inputZero = 0, outputZero = 0;
  float scale = 0;  // of the input by that of the output
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

template <typename T>
void addPixel(const T* pixel, int32_t* sums, size_t channels) {
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t c = 0; c < channels; ++c) sums[c] += pixel[c];
  });
}

// The means of `channels` sums, rounded half away from zero.
template <typename T>
void writeMeans(const AveragePool& a, const int32_t* sums, float factor, T* out) {
  const size_t channels = a.pool.channels;
  const int32_t zero = a.outputZero;
  const ops::QuantizedRange steps = a.steps;
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t c = 0; c < channels; ++c) {
      float mean = static_cast<float>(sums[c]) * factor;
      mean = mean < -512.0f ? -512.0f : mean;
      mean = mean > 512.0f ? 512.0f : mean;
      int32_t rounded = static_cast<int32_t>(mean + (mean < 0.0f ? -0.5f : 0.5f)) + zero;
      rounded = std::max(rounded, steps.lowest);
      out[c] = static_cast<T>(std::min(rounded, steps.highest));
    }
  });
}

template <typename T>
void poolLine(const AveragePool& a, size_t line, const T* source, T* target) {
  const Pooling& p = a.pool;
  const size_t y = line % p.outputHeight;
  const T* image = source + line / p.outputHeight * p.inputHeight * p.inputWidth * p.channels;
  const Span rows = covered(y, p.strideHeight, p.top, p.filterHeight, p.inputHeight);
  std::vector<int32_t> sums(p.channels);
  for (size_t x = 0; x < p.outputWidth; ++x) {
    const Span columns = covered(x, p.strideWidth, p.left, p.filterWidth, p.inputWidth);
    const auto count =
        static_cast<int32_t>((rows.end - rows.begin) * (columns.end - columns.begin));
    std::fill(sums.begin(), sums.end(), -count * a.inputZero);
    for (size_t row = rows.begin; row < rows.end; ++row) {
      for (size_t column = columns.begin; column < columns.end; ++column) {
        const T* pixel = image + (row * p.inputWidth + column) * p.channels;
        addPixel(pixel, sums.data(), p.channels);
      }
    }
    // A window of padding alone has the mean 0.
    const float factor = count == 0 ? 0.0f : a.scale / static_cast<float>(count);
    writeMeans(a, sums.data(), factor, target + (line * p.outputWidth + x) * p.channels);
  }
}

}  // namespace

Result<bool> addQuantizedAveragePool(PlanBuilder* builder, const Pooling& pooling) {
  // Sums stay within 32 bits.
  constexpr uint64_t kMostInputs = uint64_t{1} << 22;
  if (uint64_t{pooling.filterHeight} * pooling.filterWidth > kMostInputs) return false;
  const graph::Operand& input = builder->operand(pooling.input);
  const graph::Operand& output = builder->operand(pooling.output);
  AveragePool a;
  a.pool = pooling;
  a.inputZero = input.zeroPoint;
  a.outputZero = output.zeroPoint;
  a.scale = input.scale / output.scale;
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
            for (uint64_t line = begin; line < end; ++line) {
              if (isSigned)
                poolLine(a, line, run.at<int8_t>(a.source), run.at<int8_t>(a.destination));
              else
                poolLine(a, line, run.at<uint8_t>(a.source), run.at<uint8_t>(a.destination));
            }
          });
      return {};
    });
  };
  return true;
}

}  // namespace hearth::cpu
