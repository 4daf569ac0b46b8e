// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/own_kernels.h"

#include <algorithm>
#include <cstring>

#include "drivers/cpu/kernels/function_kernel.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

using threads::forRanges;
using threads::grainOf;

// One source for all instruction sets; the loader picks the widest that the CPU has.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__clang__)
#define HEARTH_WIDE_VECTORS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HEARTH_WIDE_VECTORS
#endif

class CopyKernel final : public Kernel {
 public:
  explicit CopyKernel(std::vector<BlockCopy> copies) : copies_(std::move(copies)) {}

  Result<size_t> reshape(threads::ThreadPool*) override { return 0; }

  Status setup(std::span<void* const> addresses, void*) override {
    pointers_.clear();
    for (const BlockCopy& copy : copies_)
      pointers_.push_back(
          {static_cast<uint8_t*>(addresses[copy.source]) + copy.sourceOffset,
           static_cast<uint8_t*>(addresses[copy.destination]) + copy.destinationOffset});
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    for (size_t i = 0; i < copies_.size(); ++i) {
      const BlockCopy& copy = copies_[i];
      const Pointers& at = pointers_[i];
      if (copy.bytes == 0) continue;
      forRanges(pool, copy.rows, grainOf(copy.bytes), [&](uint64_t begin, uint64_t end) {
        for (uint64_t row = begin; row < end; ++row)
          std::memcpy(at.destination + row * copy.destinationStride,
                      at.source + row * copy.sourceStride, copy.bytes);
      });
    }
    return {};
  }

 private:
  struct Pointers {
    const uint8_t* source;
    uint8_t* destination;
  };
  const std::vector<BlockCopy> copies_;
  std::vector<Pointers> pointers_;
};

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

HEARTH_WIDE_VECTORS void addClamped(const float* a, const float* b, float* sum, size_t rows,
                                    size_t columns, float lowest, float highest) {
  for (size_t row = 0; row < rows; ++row) {
    const float* from = a + row * columns;
    float* to = sum + row * columns;
#pragma GCC ivdep
    for (size_t i = 0; i < columns; ++i) {
      const float value = from[i] + b[i];
      // In this order a NaN stays a NaN, as in XNNPACK.
      const float raised = value < lowest ? lowest : value;
      to[i] = raised > highest ? highest : raised;
    }
  }
}

HEARTH_WIDE_VECTORS void interleave3(const uint8_t* first, const uint8_t* second,
                                     const uint8_t* third, uint8_t* out, size_t count) {
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) {
    out[3 * i] = first[i];
    out[3 * i + 1] = second[i];
    out[3 * i + 2] = third[i];
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> makeCopyKernel(std::vector<BlockCopy> copies) {
  return std::make_unique<CopyKernel>(std::move(copies));
}

Result<std::unique_ptr<Kernel>> makeSpatialPadKernel(SpatialPad pad) {
  return makeFunctionKernel([pad](const KernelRun& run) -> Status {
    const auto* source = run.at<const uint8_t>(pad.source);
    auto* destination = run.at<uint8_t>(pad.destination);
    const uint64_t rows = pad.batch * (pad.height + pad.top + pad.bottom);
    const uint64_t rowBytes = (pad.width + pad.left + pad.right) * pad.pixelBytes;
    forRanges(run.pool, rows, grainOf(rowBytes), [&](uint64_t begin, uint64_t end) {
      for (uint64_t row = begin; row < end; ++row)
        padRow(pad, source, row, destination + row * rowBytes);
    });
    return {};
  });
}

Result<std::unique_ptr<Kernel>> makePlaneInterleaveKernel(PlaneInterleave interleave) {
  return makeFunctionKernel([interleave](const KernelRun& run) -> Status {
    const uint64_t pixels = interleave.pixels;
    for (uint64_t image = 0; image < interleave.batch; ++image) {
      const uint8_t* planes = run.at<const uint8_t>(interleave.source) + image * 3 * pixels;
      uint8_t* out = run.at<uint8_t>(interleave.destination) + image * 3 * pixels;
      forRanges(run.pool, pixels, grainOf(3), [&](uint64_t begin, uint64_t end) {
        interleave3(planes + begin, planes + pixels + begin, planes + 2 * pixels + begin,
                    out + 3 * begin, end - begin);
      });
    }
    return {};
  });
}

Result<std::unique_ptr<Kernel>> makeFloatAddKernel(FloatAdd add) {
  return makeFunctionKernel([add](const KernelRun& run) -> Status {
    const auto* a = run.at<const float>(add.a);
    const auto* b = run.at<const float>(add.b);
    auto* sum = run.at<float>(add.sum);
    // A single row is divided among the threads by columns.
    const bool isRow = add.rows == 1;
    const size_t columns = isRow ? 1 : add.columns;
    forRanges(run.pool, isRow ? add.columns : add.rows, grainOf(columns * sizeof(float)),
              [&](uint64_t begin, uint64_t end) {
                addClamped(a + begin * columns, isRow ? b + begin : b, sum + begin * columns,
                           isRow ? 1 : end - begin, isRow ? end - begin : columns, add.lowest,
                           add.highest);
              });
    return {};
  });
}

}  // namespace hearth::cpu
