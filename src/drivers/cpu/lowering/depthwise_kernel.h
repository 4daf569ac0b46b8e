// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "drivers/cpu/kernels/kernel.h"
#include "drivers/cpu/microkernels/x86/dwconv_windows.h"
#include "threads/parallel_ranges.h"

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
    threads::forRanges(pool, windows_.lines(), threads::grainOf(lineSize() * kWork),
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

  size_t lineSize() const { return layer_.geometry.outputWidth * layer_.geometry.groups; }

  Element* destination_ = nullptr;
};

}  // namespace hearth::cpu
