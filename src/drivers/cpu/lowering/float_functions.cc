// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/float_functions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "drivers/cpu/kernels/function_kernel.h"
#include "drivers/cpu/lowering/declined.h"
#include "drivers/cpu/microkernels/portable/vector_math.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

struct Gelu {
  HEARTH_INLINE float operator()(float x) const { return geluVector(x); }
};
struct GeluByTanh {
  HEARTH_INLINE float operator()(float x) const { return geluByTanhVector(x); }
};
struct HardSwish {
  HEARTH_INLINE float operator()(float x) const { return hardSwishVector(x); }
};
// A function with `near` computes it for magnitudes up to kNear.
struct Exp {
  static constexpr float kNear = kNearExponents;
  HEARTH_INLINE static float near(float x) { return expNearVector(x); }
  HEARTH_INLINE float operator()(float x) const { return expVector(x); }
};
struct Sign {
  HEARTH_INLINE float operator()(float x) const { return signVector(x); }
};
struct Tanh {
  HEARTH_INLINE float operator()(float x) const { return tanhVector(x); }
};
struct Elu {
  float alpha;
  HEARTH_INLINE float operator()(float x) const {
    const float below = alpha * expLessOneVector(x);
    return x < 0.0f ? below : x;
  }
};

template <typename Function>
void map(Function function, const float* source, float* target, size_t count) {
  constexpr size_t kBlock = 128;
  // Processors prefetch by themselves, but not beyond the end of a page.
  constexpr size_t kAhead = 4 * kBlock;
  constexpr size_t kLine = 64 / sizeof(float);
  base::onWidestVectors([=]() HEARTH_INLINE {
    for (size_t first = 0; first < count; first += kBlock) {
      const size_t last = std::min(count, first + kBlock);
      for (size_t i = first; i < last; i += kLine) __builtin_prefetch(source + kAhead + i);
#pragma GCC ivdep
      for (size_t i = first; i < last; ++i) target[i] = function(source[i]);
    }
  });
}

// Without the sign, the bits of floats compare as the numbers do, and NaN is the greatest.
constexpr uint32_t kMagnitude = 0x7FFFFFFF;

// The same for a function whose near() takes less work: it computes the blocks of numbers whose
// magnitudes are small enough, as most are.
template <typename Function>
void mapNear(Function function, const float* source, float* target, size_t count) {
  constexpr size_t kBlock = 256;
  constexpr size_t kAhead = 512;
  constexpr size_t kLine = 64 / sizeof(float);
  base::onWidestVectors([=]() HEARTH_INLINE {
    for (size_t first = 0; first < count; first += kBlock) {
      const size_t last = std::min(count, first + kBlock);
      for (size_t i = first; i < last; i += kLine) __builtin_prefetch(source + kAhead + i);
      uint32_t most = 0;
      for (size_t i = first; i < last; ++i)
        most = std::max(most, std::bit_cast<uint32_t>(source[i]) & kMagnitude);
      if (most <= std::bit_cast<uint32_t>(Function::kNear)) {
#pragma GCC ivdep
        for (size_t i = first; i < last; ++i) target[i] = Function::near(source[i]);
      } else {
#pragma GCC ivdep
        for (size_t i = first; i < last; ++i) target[i] = function(source[i]);
      }
    }
  });
}

// Computes vectors of sines or cosines. Numbers that need more digits of pi, and NaN, go to the C
// library one by one.
template <bool kIsCosine>
void writeSines(const float* source, float* target, size_t count) {
  uint32_t greatest = 0;
  uint32_t* const found = &greatest;
  base::onWidestVectors([=]() HEARTH_INLINE {
    uint32_t most = 0;
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) {
      const float x = source[i];
      most = std::max(most, std::bit_cast<uint32_t>(x) & kMagnitude);
      target[i] = sineVector<kIsCosine>(x);
    }
    *found = most;
  });
  if (greatest <= std::bit_cast<uint32_t>(kMostRadians)) return;
  for (size_t i = 0; i < count; ++i) {
    const float x = source[i];
    if (!(std::fabs(x) <= kMostRadians)) target[i] = kIsCosine ? std::cos(x) : std::sin(x);
  }
}

template <bool kIsCosine>
void mapSine(const float* source, float* target, size_t count) {
  if (source != target) return writeSines<kIsCosine>(source, target, count);
  constexpr size_t kBlock = 4096;
  float copy[kBlock];
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t size = std::min(kBlock, count - first);
    std::copy_n(source + first, size, copy);
    writeSines<kIsCosine>(copy, target + first, size);
  }
}

// Adds a node that calls write(source, target, count) for parts of input 0 and output 0.
template <typename Write>
Result<bool> addNode(PlanBuilder* builder, Write write) {
  const graph::Operation& operation = *builder->context().operation;
  if (builder->operand(operation.inputs[0]).type != graph::OperandType::kTensorFloat32)
    return builder->decline(kOnlyFloat32);
  const ValueId source = builder->read(operation.inputs[0]);
  const ValueId destination = builder->write(operation.outputs[0]);
  const uint64_t count = builder->tensor(operation.outputs[0]).elementCount();
  Node& node = builder->add("own", {source}, {destination});
  node.inPlaceInputs = {0};
  node.create = [=] {
    return makeFunctionKernel([=](const KernelRun& run) -> Status {
      const float* from = run.at<float>(source);
      float* to = run.at<float>(destination);
      // An element is much more work than copying it, so smaller parts pay.
      constexpr uint64_t kGrain = 4096;
      threads::forRanges(run.pool, count, kGrain, [&](uint64_t begin, uint64_t end) {
        write(from + begin, to + begin, end - begin);
      });
      return {};
    });
  };
  return true;
}

// Adds output 0 = function(input 0), element by element.
template <typename Function>
Result<bool> addFunction(PlanBuilder* builder, Function function) {
  return addNode(builder, [function](const float* source, float* target, size_t count) {
    if constexpr (requires { Function::kNear; })
      mapNear(function, source, target, count);
    else
      map(function, source, target, count);
  });
}

}  // namespace

Result<bool> lowerGelu(PlanBuilder* builder) {
  HEARTH_ASSIGN(const bool isApproximate, builder->context().scalar<bool>(1));
  return isApproximate ? addFunction(builder, GeluByTanh()) : addFunction(builder, Gelu());
}

Result<bool> lowerHardSwish(PlanBuilder* builder) {
  return addFunction(builder, HardSwish());
}

Result<bool> lowerExp(PlanBuilder* builder) {
  return addFunction(builder, Exp());
}

Result<bool> lowerSign(PlanBuilder* builder) {
  return addFunction(builder, Sign());
}

Result<bool> lowerTanh(PlanBuilder* builder) {
  return addFunction(builder, Tanh());
}

Result<bool> lowerElu(PlanBuilder* builder) {
  HEARTH_ASSIGN(const float alpha, ops::floatScalar(builder->context(), 1));
  return addFunction(builder, Elu{alpha});
}

Result<bool> lowerSin(PlanBuilder* builder) {
  return addNode(builder, mapSine<false>);
}

Result<bool> lowerCos(PlanBuilder* builder) {
  return addNode(builder, mapSine<true>);
}

}  // namespace hearth::cpu
