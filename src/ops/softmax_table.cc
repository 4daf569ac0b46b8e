// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/vector_dispatch.h"

namespace hearth::ops {
namespace {

constexpr int kSteps = 512;
constexpr int32_t kLowest = -32768;
constexpr int32_t kHighest = 32767;
constexpr int32_t kSpan = kHighest - kLowest;

// A function on [first, first + kSpan * step], for all 16-bit arguments, with 15 fraction bits.
class Interpolation {
 public:
  template <typename Function>
  Interpolation(double step, int32_t zero, const Function& function) {
    const double first = step * (kLowest - zero);
    const double last = step * (kHighest - zero);
    const double width = (last - first) / kSteps;
    // The scale of results follows from the ends of their range, [-1, 1], not from its steps.
    constexpr double kResultStep = 2.0 / kSpan;
    constexpr double kScale = (kSpan + 1) / (kResultStep * kHighest - kResultStep * kLowest);
    for (int i = 0; i < kSteps; ++i) {
      const double value = std::round(function(first + i * width) * kScale);
      const double next = function(first + (i + 1) * width) * kScale;
      const double middle = std::round(function(first + i * width + width / 2) * kScale);
      // A straight line has its largest error in the middle; moving the ends by half of it spreads
      // it.
      const double error = std::round((next + value) / 2) - middle;
      entries_[static_cast<size_t>(i)] = saturate(value - std::round(error / 2));
    }
    entries_[kSteps] = saturate(std::round(function(last) * kScale));
  }

  int16_t operator()(int16_t argument) const {
    const int place = kSteps / 2 + (argument >> 7);
    const auto index = static_cast<size_t>(place);
    const int32_t base = entries_[index];
    const int32_t slope = static_cast<int16_t>(entries_[index + 1] - base);
    return static_cast<int16_t>(base + ((slope * (argument & 127) + 64) >> 7));
  }

 private:
  static int16_t saturate(double value) {
    return static_cast<int16_t>(
        std::clamp(value, static_cast<double>(kLowest), static_cast<double>(kHighest)));
  }

  std::array<int16_t, kSteps + 1> entries_{};
};

// e^x on [-10, 0]; below -10 it counts as 0.
constexpr double kReach = 10.0;
const Interpolation& exponentialTable() {
  static const Interpolation table(kReach / kSpan, kHighest, [](double x) { return std::exp(x); });
  return table;
}

// 1 / (1 + x) on [0, 1].
const Interpolation& inverseTable() {
  static const Interpolation table(1.0 / kSpan, kLowest, [](double x) { return 1.0 / (1.0 + x); });
  return table;
}

int16_t saturate16(int32_t value) {
  return static_cast<int16_t>(std::clamp(value, kLowest, kHighest));
}

}  // namespace

SoftmaxTable::SoftmaxTable(float scale, float beta)
    : factor_(toFixedMultiplier(scale * beta / (kReach / kSpan))) {}

void SoftmaxTable::apply(std::span<const int16_t> row, std::span<int16_t> result) const {
  if (row.empty()) return;
  const Interpolation& exponentials = exponentialTable();
  const int32_t highest = *std::ranges::max_element(row);
  int64_t total = 0;
  constexpr size_t kBlock = 256;
  std::array<int32_t, kBlock> distances;
  for (size_t first = 0; first < row.size(); first += kBlock) {
    const size_t count = std::min(kBlock, row.size() - first);
    for (size_t i = 0; i < count; ++i) distances[i] = row[first + i] - highest;
    multiplyEach({distances.data(), count}, factor_, distances.data());
    for (size_t i = 0; i < count; ++i) {
      result[first + i] = exponentials(saturate16(distances[i] + kHighest));
      total += result[first + i];
    }
  }
  // A row of more than 65536 elements may have a larger sum, for which TFLite defines no result.
  const auto sum = static_cast<uint32_t>(std::clamp<int64_t>(total, 2, INT32_MAX));
  // The sum is 2^(30 - zeros) * (1 + x).
  const int zeros = std::countl_zero(sum);
  const auto shifted =
      static_cast<int32_t>(((static_cast<int64_t>(sum) << (zeros - 1)) + (1 << 13)) >> 14);
  const int32_t inverse = inverseTable()(saturate16(shifted - (1 << 15) - (1 << 16)));
  const int shift = 31 - zeros;  // 1 to 30
  base::onWidestVectors([=]() HEARTH_INLINE {
    const int32_t half = 1 << (shift - 1);
#pragma GCC ivdep
    for (size_t i = 0; i < result.size(); ++i)
      result[i] =
          static_cast<int16_t>(std::clamp((result[i] * inverse + half) >> shift, 0, kHighest));
  });
}

}  // namespace hearth::ops
