// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/float_pairs.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "base/vector_dispatch.h"
#include "drivers/cpu/kernels/function_kernel.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

constexpr float kLeastNormal = std::numeric_limits<float>::min();
constexpr float kGreatest = std::numeric_limits<float>::max();
constexpr uint32_t kSign = 0x80000000;

// The polynomial of x with these coefficients, the constant term first.
HEARTH_INLINE inline double polynomial(double, double last) {
  return last;
}
template <typename... Others>
HEARTH_INLINE inline double polynomial(double x, double first, Others... others) {
  return first + x * polynomial(x, others...);
}

// The functions below compute in double, with errors far below half a unit in the last place of the
// float that they are rounded to. vector() is right for the pairs of isPlain(), any() for all.

struct Power {
  HEARTH_INLINE static bool isPlain(float base, float exponent) {
    return (base >= kLeastNormal) & (base <= kGreatest) & (std::fabs(exponent) <= kGreatest);
  }

  HEARTH_INLINE static float vector(float base, float exponent) {
    // base = 2^whole * part, with part between the square roots of 1/2 and 2.
    constexpr uint32_t kRootOfHalf = 0x3F3504F3;
    const auto bits = std::bit_cast<uint32_t>(base);
    // For pairs that are not plain this may overflow.
    const int32_t whole = static_cast<int32_t>(bits - kRootOfHalf) >> 23;
    const double part = std::bit_cast<float>(bits - (static_cast<uint32_t>(whole) << 23));
    // The logarithm as the series of an inverse hyperbolic tangent.
    const double quotient = (part - 1.0) / (part + 1.0);
    constexpr double kFactor = 2.0 * std::numbers::log2e;
    const double logarithm =
        whole + quotient * polynomial(quotient * quotient, kFactor, kFactor / 3, kFactor / 5,
                                      kFactor / 7, kFactor / 9, kFactor / 11, kFactor / 13);
    double power = exponent * logarithm;
    // Beyond these exponents results are 0 or infinite.
    constexpr double kFar = 160.0;
    power = power < -kFar ? -kFar : power;
    power = power > kFar ? kFar : power;
    // Adding this number rounds, and leaves the exponent, with the bias of double, in the lowest
    // bits.
    constexpr double kShift = 0x1.8p52 + 1023;
    const double shifted = power + kShift;
    const double rest = power - (shifted - kShift);
    const double scale = std::bit_cast<double>(std::bit_cast<uint64_t>(shifted) << 52);
    // The series of 2^rest.
    constexpr double kLog = std::numbers::ln2;
    constexpr double kLog2 = kLog * kLog / 2;
    constexpr double kLog3 = kLog2 * kLog / 3;
    constexpr double kLog4 = kLog3 * kLog / 4;
    constexpr double kLog5 = kLog4 * kLog / 5;
    constexpr double kLog6 = kLog5 * kLog / 6;
    constexpr double kLog7 = kLog6 * kLog / 7;
    constexpr double kLog8 = kLog7 * kLog / 8;
    return static_cast<float>(
        scale * polynomial(rest, 1.0, kLog, kLog2, kLog3, kLog4, kLog5, kLog6, kLog7, kLog8));
  }

  static float any(float base, float exponent) { return std::pow(base, exponent); }
};

struct ArcTangent {
  HEARTH_INLINE static bool isPlain(float y, float x) {
    return (std::fabs(y) <= kGreatest) & (std::fabs(x) <= kGreatest);
  }

  HEARTH_INLINE static float vector(float y, float x) {
    constexpr double kQuarter = std::numbers::pi / 4;
    const double height = std::fabs(y);
    const double width = std::fabs(x);
    const double shorter = height < width ? height : width;
    const double longer = height < width ? width : height;
    // Computes the angle from the nearer of 0 and pi / 4: its tangent is at most that of pi / 8.
    constexpr double kTangent = std::numbers::sqrt2 - 1.0;
    const bool isNearQuarter = shorter > kTangent * longer;
    const double over = isNearQuarter ? shorter - longer : shorter;
    const double under = isNearQuarter ? shorter + longer : longer;
    const double tangent = over / (under == 0.0 ? 1.0 : under);
    const double series = polynomial(tangent * tangent, 1.0, -1.0 / 3, 1.0 / 5, -1.0 / 7, 1.0 / 9,
                                     -1.0 / 11, 1.0 / 13, -1.0 / 15, 1.0 / 17, -1.0 / 19, 1.0 / 21);
    double angle = (isNearQuarter ? kQuarter : 0.0) + tangent * series;
    angle = height > width ? 2 * kQuarter - angle : angle;
    angle = (std::bit_cast<uint32_t>(x) & kSign) != 0 ? 4 * kQuarter - angle : angle;
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(angle));
    return std::bit_cast<float>(bits | (std::bit_cast<uint32_t>(y) & kSign));
  }

  static float any(float y, float x) { return std::atan2(y, x); }
};

// target[i] = function(a[i], b[i]), with a[0] or b[0] where there is one number for all. Pairs that
// are not plain go to the C library one by one.
template <typename Function, bool kIsOneA, bool kIsOneB>
void map(const float* a, const float* b, float* target, size_t count) {
  uint32_t others = 0;
  uint32_t* const found = &others;
  base::onWidestVectors([=]() HEARTH_INLINE {
    uint32_t any = 0;
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) {
      const float x = a[kIsOneA ? 0 : i];
      const float y = b[kIsOneB ? 0 : i];
      any |= Function::isPlain(x, y) ? 0u : 1u;
      target[i] = Function::vector(x, y);
    }
    *found = any;
  });
  if (others == 0) return;
  for (size_t i = 0; i < count; ++i) {
    const float x = a[kIsOneA ? 0 : i];
    const float y = b[kIsOneB ? 0 : i];
    if (!Function::isPlain(x, y)) target[i] = Function::any(x, y);
  }
}

template <typename Function>
Result<bool> addNode(PlanBuilder* builder) {
  const graph::Operation& operation = *builder->context().operation;
  const ops::Tensor& tensorA = builder->tensor(operation.inputs[0]);
  const ops::Tensor& tensorB = builder->tensor(operation.inputs[1]);
  const ops::Tensor& output = builder->tensor(operation.outputs[0]);
  if (output.type() != graph::OperandType::kTensorFloat32) return false;
  const uint64_t count = output.elementCount();
  const bool isOneA = tensorA.elementCount() == 1;
  const bool isOneB = tensorB.elementCount() == 1;
  if ((!isOneA && tensorA.elementCount() != count) || (!isOneB && tensorB.elementCount() != count))
    return false;
  const auto function = isOneA && isOneB ? map<Function, true, true>
                        : isOneA         ? map<Function, true, false>
                        : isOneB         ? map<Function, false, true>
                                         : map<Function, false, false>;
  const ValueId a = builder->read(operation.inputs[0]);
  const ValueId b = builder->read(operation.inputs[1]);
  const ValueId destination = builder->write(operation.outputs[0]);
  builder->add("own", {a, b}, {destination}).create = [=] {
    return makeFunctionKernel([=](const KernelRun& run) -> Status {
      const float* fromA = run.at<float>(a);
      const float* fromB = run.at<float>(b);
      float* to = run.at<float>(destination);
      // An element is much more work than copying it, so smaller parts pay.
      constexpr uint64_t kGrain = 2048;
      threads::forRanges(run.pool, count, kGrain, [&](uint64_t begin, uint64_t end) {
        function(isOneA ? fromA : fromA + begin, isOneB ? fromB : fromB + begin, to + begin,
                 end - begin);
      });
      return {};
    });
  };
  return true;
}

}  // namespace

Result<bool> lowerPow(PlanBuilder* builder) {
  const ops::Tensor& exponent = builder->context().inputs[1];
  if (exponent.type() == graph::OperandType::kTensorFloat32 && exponent.data != nullptr &&
      exponent.elementCount() == 1 && *exponent.as<float>() == 2.0f)
    return false;
  return addNode<Power>(builder);
}

Result<bool> lowerAtan2(PlanBuilder* builder) {
  return addNode<ArcTangent>(builder);
}

}  // namespace hearth::cpu
