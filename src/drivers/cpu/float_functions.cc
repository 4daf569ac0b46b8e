// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/float_functions.h"

#include <algorithm>
#include <cmath>

#include "drivers/cpu/function_kernel.h"
#include "drivers/cpu/vector_math.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

struct Gelu {
  HEARTH_INLINE static float vector(float x) { return geluVector(x); }
};
struct GeluByTanh {
  HEARTH_INLINE static float vector(float x) { return geluByTanhVector(x); }
};
struct HardSwish {
  HEARTH_INLINE static float vector(float x) { return hardSwishVector(x); }
};
struct Exp {
  HEARTH_INLINE static float vector(float x) { return expVector(x); }
};

template <typename Function>
void map(const float* source, float* target, size_t count) {
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) target[i] = Function::vector(source[i]);
  });
}

// Numbers whose sine needs more digits of pi, and NaN, go to the library, with the block they are
// in.
template <bool kIsCosine>
void mapSine(const float* source, float* target, size_t count) {
  constexpr size_t kBlock = 1024;
  float copy[kBlock];
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t size = std::min(kBlock, count - first);
    const float* from = source + first;
    float* to = target + first;
    if (source == target) {
      std::copy_n(from, size, copy);
      from = copy;
    }
    uint32_t largeOnes = 0;
    uint32_t* counted = &largeOnes;
    base::onWidestVectors([=]() HEARTH_INLINE {
      uint32_t large = 0;
#pragma GCC ivdep
      for (size_t i = 0; i < size; ++i) {
        const float x = from[i];
        large += std::fabs(x) <= kMostRadians ? 0 : 1;
        to[i] = sineVector<kIsCosine>(x);
      }
      *counted = large;
    });
    if (largeOnes == 0) continue;
    for (size_t i = 0; i < size; ++i) to[i] = kIsCosine ? std::cos(from[i]) : std::sin(from[i]);
  }
}

// Adds output 0 = function(input 0).
Result<bool> addFloatFunction(PlanBuilder* builder,
                              void (*function)(const float*, float*, size_t)) {
  const graph::Operation& operation = *builder->context().operation;
  if (builder->operand(operation.inputs[0]).type != graph::OperandType::kTensorFloat32)
    return false;
  const ValueId source = builder->read(operation.inputs[0]);
  const ValueId destination = builder->write(operation.outputs[0]);
  const uint64_t count = builder->tensor(operation.outputs[0]).elementCount();
  Node& node = builder->add("own", {source}, {destination});
  node.inPlaceInputs = {0};
  node.create = [=] {
    return makeFunctionKernel([=](const KernelRun& run) -> Status {
      const float* from = run.at<float>(source);
      float* to = run.at<float>(destination);
      // Much more work than a copy: smaller parts pay.
      constexpr uint64_t kGrain = 4096;
      threads::forRanges(run.pool, count, kGrain, [&](uint64_t begin, uint64_t end) {
        function(from + begin, to + begin, end - begin);
      });
      return {};
    });
  };
  return true;
}

}  // namespace

Result<bool> lowerGelu(PlanBuilder* builder) {
  HEARTH_ASSIGN(const bool isApproximate, builder->context().scalar<bool>(1));
  return addFloatFunction(builder, isApproximate ? map<GeluByTanh> : map<Gelu>);
}

Result<bool> lowerHardSwish(PlanBuilder* builder) {
  return addFloatFunction(builder, map<HardSwish>);
}

Result<bool> lowerExp(PlanBuilder* builder) {
  return addFloatFunction(builder, map<Exp>);
}

Result<bool> lowerSin(PlanBuilder* builder) {
  return addFloatFunction(builder, mapSine<false>);
}

Result<bool> lowerCos(PlanBuilder* builder) {
  return addFloatFunction(builder, mapSine<true>);
}

}  // namespace hearth::cpu
