// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/pad_kernel.h"

#include <cstring>

#include "drivers/cpu/kernels/function_kernel.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

void padRow(const SpatialPad& pad, const uint8_t* source, uint64_t row, uint8_t* out) {
  const uint64_t outputHeight = pad.height + pad.top + pad.bottom;
  const uint64_t leftBytes = pad.left * pad.pixelBytes;
  const uint64_t middleBytes = pad.width * pad.pixelBytes;
  const uint64_t rightBytes = pad.right * pad.pixelBytes;
  const uint64_t y = row % outputHeight;
  if (y < pad.top || y >= pad.top + pad.height) {
    std::memset(out, pad.fillByte, leftBytes + middleBytes + rightBytes);
    return;
  }
  const uint64_t sourceRow = row / outputHeight * pad.height + (y - pad.top);
  std::memset(out, pad.fillByte, leftBytes);
  std::memcpy(out + leftBytes, source + sourceRow * middleBytes, middleBytes);
  std::memset(out + leftBytes + middleBytes, pad.fillByte, rightBytes);
}

}  // namespace

Result<std::unique_ptr<Kernel>> makePadKernel(SpatialPad pad) {
  return makeFunctionKernel([pad](const KernelRun& run) -> Status {
    const auto* source = run.at<const uint8_t>(pad.source);
    auto* destination = run.at<uint8_t>(pad.destination);
    const uint64_t rows = pad.batch * (pad.height + pad.top + pad.bottom);
    const uint64_t rowBytes = (pad.width + pad.left + pad.right) * pad.pixelBytes;
    threads::forRanges(run.pool, rows, threads::grainOf(rowBytes),
                       [&](uint64_t begin, uint64_t end) {
                         for (uint64_t row = begin; row < end; ++row)
                           padRow(pad, source, row, destination + row * rowBytes);
                       });
    return {};
  });
}

}  // namespace hearth::cpu
