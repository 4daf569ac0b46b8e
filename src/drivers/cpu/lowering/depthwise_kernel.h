// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/x86/dwconv_windows.h"
#include "threads/parallel_ranges.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {

// A depthwise convolution on a product of ours, line by line of the output. A Layer has a geometry,
// a source and a destination.
template <typename Element, typename Layer>
class DepthwiseKernel : public Kernel {
 public:
  DepthwiseKernel(const Layer& layer, Element padding)
      : layer_(layer), windows_(layer.geometry, padding) {}

  Result<size_t> reshape(threads::ThreadPool*) override { return 0; }

  Status setup(std::span<void* const> addresses, void*) override {
    source_ = static_cast<const Element*>(addresses[layer_.source]);
    destination_ = static_cast<Element*>(addresses[layer_.destination]);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    threads::forRanges(pool, windows_.lines(), evenGrain(threads::threadsOf(pool)),
                       [&](uint64_t begin, uint64_t end) {
                         for (uint64_t line = begin; line < end; ++line)
                           compute(line, destination_ + line * lineSize());
                       });
    return {};
  }

 protected:
  // Computes one line of the output.
  virtual void compute(size_t line, Element* output) const = 0;

  const Layer layer_;
  const DwconvWindows<Element> windows_;
  const Element* source_ = nullptr;

 private:
  // Computing an output takes as long as copying this many bytes.
  static constexpr size_t kWork = 8;

  // Lines of a part, of which each of several threads gets as many: with three parts one of two
  // threads would wait while the other one computes the third.
  uint64_t evenGrain(size_t threads) const {
    const uint64_t lines = windows_.lines();
    const uint64_t grain = threads::grainOf(lineSize() * kWork);
    const uint64_t parts = (lines + grain - 1) / grain;
    const uint64_t even = (parts + threads - 1) / threads * threads;
    // Few parts for many threads would be too small.
    if (parts < 2 || even > 2 * parts) return grain;
    return (lines + even - 1) / even;
  }

  size_t lineSize() const { return layer_.geometry.outputWidth * layer_.geometry.groups; }

  Element* destination_ = nullptr;
};

}  // namespace hearth::cpu
