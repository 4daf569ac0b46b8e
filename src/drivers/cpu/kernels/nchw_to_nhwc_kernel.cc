// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/nchw_to_nhwc_kernel.h"

#include "base/vector_dispatch.h"
#include "drivers/cpu/kernels/function_kernel.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

void interleave3(const uint8_t* first, const uint8_t* second, const uint8_t* third, uint8_t* out,
                 size_t count) {
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) {
      out[3 * i] = first[i];
      out[3 * i + 1] = second[i];
      out[3 * i + 2] = third[i];
    }
  });
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeNchwToNhwcKernel(NchwToNhwc transposition) {
  return makeFunctionKernel([transposition](const KernelRun& run) -> Status {
    const uint64_t pixels = transposition.pixels;
    for (uint64_t image = 0; image < transposition.batch; ++image) {
      const uint8_t* planes = run.at<const uint8_t>(transposition.source) + image * 3 * pixels;
      uint8_t* out = run.at<uint8_t>(transposition.destination) + image * 3 * pixels;
      threads::forRanges(run.pool, pixels, threads::grainOf(3), [&](uint64_t begin, uint64_t end) {
        interleave3(planes + begin, planes + pixels + begin, planes + 2 * pixels + begin,
                    out + 3 * begin, end - begin);
      });
    }
    return {};
  });
}

}  // namespace hearth::cpu
