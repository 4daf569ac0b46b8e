// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/half_conversion.h"

#include <algorithm>

#include "drivers/cpu/kernels/function_kernel.h"
#include "ops/half.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

// By way of a few numbers at a time, which stay in the first-level cache.
void roundToHalves(float* numbers, uint64_t count) {
  constexpr uint64_t kTogether = 512;
  ops::Half halves[kTogether];
  for (uint64_t i = 0; i < count; i += kTogether) {
    const uint64_t together = std::min(kTogether, count - i);
    ops::narrowFloats(numbers + i, together, halves);
    ops::widenHalves(halves, together, numbers + i);
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeHalfConversion(const HalfConversion& conversion) {
  return makeFunctionKernel([c = conversion](const KernelRun& run) -> Status {
    const auto convert = [&](uint64_t begin, uint64_t end) {
      switch (c.kind) {
        case HalfConversion::Kind::kWiden:
          return ops::widenHalves(run.at<const ops::Half>(c.source) + begin, end - begin,
                                  run.at<float>(c.destination) + begin);
        case HalfConversion::Kind::kNarrow:
          return ops::narrowFloats(run.at<const float>(c.source) + begin, end - begin,
                                   run.at<ops::Half>(c.destination) + begin);
        case HalfConversion::Kind::kRound:
          return roundToHalves(run.at<float>(c.source) + begin, end - begin);
      }
    };
    threads::forRanges(run.pool, c.count, threads::grainOf(sizeof(float)), convert);
    return {};
  });
}

}  // namespace hearth::cpu
