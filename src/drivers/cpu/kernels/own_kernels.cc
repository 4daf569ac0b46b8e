// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/own_kernels.h"

#include <algorithm>
#include <cstring>

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

class SpatialPadKernel final : public Kernel {
 public:
  explicit SpatialPadKernel(const SpatialPad& pad) : pad_(pad) {}

  Result<size_t> reshape(threads::ThreadPool*) override { return 0; }

  Status setup(std::span<void* const> addresses, void*) override {
    source_ = static_cast<const uint8_t*>(addresses[pad_.source]);
    destination_ = static_cast<uint8_t*>(addresses[pad_.destination]);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const uint64_t outputHeight = pad_.height + pad_.top + pad_.bottom;
    const uint64_t rowBytes = (pad_.width + pad_.left + pad_.right) * pad_.pixelBytes;
    forRanges(pool, pad_.batch * outputHeight, grainOf(rowBytes),
              [&](uint64_t begin, uint64_t end) {
                for (uint64_t row = begin; row < end; ++row) padRow(row, outputHeight, rowBytes);
              });
    return {};
  }

 private:
  void padRow(uint64_t row, uint64_t outputHeight, uint64_t rowBytes) const {
    uint8_t* out = destination_ + row * rowBytes;
    const uint64_t y = row % outputHeight;
    if (y < pad_.top || y >= pad_.top + pad_.height) {
      std::memset(out, pad_.fillByte, rowBytes);
      return;
    }
    const uint64_t leftBytes = pad_.left * pad_.pixelBytes;
    const uint64_t middleBytes = pad_.width * pad_.pixelBytes;
    const uint64_t sourceRow = row / outputHeight * pad_.height + (y - pad_.top);
    std::memset(out, pad_.fillByte, leftBytes);
    std::memcpy(out + leftBytes, source_ + sourceRow * middleBytes, middleBytes);
    std::memset(out + leftBytes + middleBytes, pad_.fillByte, rowBytes - leftBytes - middleBytes);
  }

  const SpatialPad pad_;
  const uint8_t* source_ = nullptr;
  uint8_t* destination_ = nullptr;
};

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

class PlaneInterleaveKernel final : public Kernel {
 public:
  explicit PlaneInterleaveKernel(const PlaneInterleave& interleave) : interleave_(interleave) {}

  Result<size_t> reshape(threads::ThreadPool*) override { return 0; }

  Status setup(std::span<void* const> addresses, void*) override {
    source_ = static_cast<const uint8_t*>(addresses[interleave_.source]);
    destination_ = static_cast<uint8_t*>(addresses[interleave_.destination]);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const uint64_t pixels = interleave_.pixels;
    for (uint64_t image = 0; image < interleave_.batch; ++image) {
      const uint8_t* planes = source_ + image * 3 * pixels;
      uint8_t* out = destination_ + image * 3 * pixels;
      forRanges(pool, pixels, grainOf(3), [&](uint64_t begin, uint64_t end) {
        interleave3(planes + begin, planes + pixels + begin, planes + 2 * pixels + begin,
                    out + 3 * begin, end - begin);
      });
    }
    return {};
  }

 private:
  const PlaneInterleave interleave_;
  const uint8_t* source_ = nullptr;
  uint8_t* destination_ = nullptr;
};

class FloatAddKernel final : public Kernel {
 public:
  explicit FloatAddKernel(const FloatAdd& add) : add_(add) {}

  Result<size_t> reshape(threads::ThreadPool*) override { return 0; }

  Status setup(std::span<void* const> addresses, void*) override {
    a_ = static_cast<const float*>(addresses[add_.a]);
    b_ = static_cast<const float*>(addresses[add_.b]);
    sum_ = static_cast<float*>(addresses[add_.sum]);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const size_t columns = add_.columns;
    if (add_.rows == 1) {
      forRanges(pool, columns, grainOf(sizeof(float)), [&](uint64_t begin, uint64_t end) {
        addClamped(a_ + begin, b_ + begin, sum_ + begin, 1, end - begin, add_.lowest, add_.highest);
      });
      return {};
    }
    forRanges(pool, add_.rows, grainOf(columns * sizeof(float)), [&](uint64_t begin, uint64_t end) {
      addClamped(a_ + begin * columns, b_, sum_ + begin * columns, end - begin, columns,
                 add_.lowest, add_.highest);
    });
    return {};
  }

 private:
  const FloatAdd add_;
  const float* a_ = nullptr;
  const float* b_ = nullptr;
  float* sum_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeCopyKernel(std::vector<BlockCopy> copies) {
  return std::make_unique<CopyKernel>(std::move(copies));
}

Result<std::unique_ptr<Kernel>> makeSpatialPadKernel(SpatialPad pad) {
  return std::make_unique<SpatialPadKernel>(pad);
}

Result<std::unique_ptr<Kernel>> makePlaneInterleaveKernel(PlaneInterleave interleave) {
  return std::make_unique<PlaneInterleaveKernel>(interleave);
}

Result<std::unique_ptr<Kernel>> makeFloatAddKernel(FloatAdd add) {
  return std::make_unique<FloatAddKernel>(add);
}

}  // namespace hearth::cpu
