// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "drivers/cpu/kernels/kernel.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {

// A depthwise convolution with windows of any size on a product of ours, by pointers to the places
// of some windows of a line. A Layer has a geometry, a source and a destination.
template <typename Element, typename Layer>
class DepthwisePlacesKernel : public Kernel {
 public:
  // The most outputs of a line that are computed together.
  static constexpr size_t kTogether = 8;

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    inputs_.resize(threads::threadsOf(pool) * inputsPerThread());
    return 0;
  }

  Status setup(std::span<void* const> addresses, void*) override {
    source_ = static_cast<const Element*>(addresses[layer_.source]);
    destination_ = static_cast<Element*>(addresses[layer_.destination]);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const auto& g = layer_.geometry;
    const size_t tiles = (g.outputWidth + kTogether - 1) / kTogether;
    threads::forTasks(pool, g.batch * g.outputHeight * tiles, [&](size_t task, size_t thread) {
      const size_t line = task / tiles;
      const size_t first = task % tiles * kTogether;
      const size_t count = std::min(kTogether, g.outputWidth - first);
      const Element** const inputs = inputs_.data() + thread * inputsPerThread();
      findInputs(line, first, count, inputs);
      compute(inputs, count, destination_ + (line * g.outputWidth + first) * g.groups);
    });
    return {};
  }

 protected:
  struct Place {
    size_t y, x;  // row and column of the window
  };

  // isByColumn: the places of a column follow one another, otherwise those of a row.
  DepthwisePlacesKernel(const Layer& layer, Element padding, bool isByColumn)
      : layer_(layer), padding_(layer.geometry.groups, padding) {
    const auto& g = layer_.geometry;
    const auto add = [&](size_t y, size_t x) {
      places_.push_back({y, x});
      offsets_.push_back((y * g.dilationHeight * g.inputWidth + x * g.dilationWidth) * g.groups);
    };
    for (size_t i = 0; i < (isByColumn ? g.kernelWidth : g.kernelHeight); ++i)
      for (size_t j = 0; j < (isByColumn ? g.kernelHeight : g.kernelWidth); ++j)
        isByColumn ? add(j, i) : add(i, j);
  }

  // Computes all channels of `count` neighbouring outputs. inputs[place * kTogether + output]
  // points to the channels at a place of the window of an output.
  virtual void compute(const Element* const* inputs, size_t count, Element* output) const = 0;

  const Layer layer_;
  const std::vector<Element> padding_;  // a pixel
  std::vector<Place> places_;

 private:
  size_t inputsPerThread() const { return places_.size() * kTogether; }

  void findInputs(size_t line, size_t first, size_t count, const Element** inputs) const {
    const auto& g = layer_.geometry;
    const Element* const image =
        source_ + line / g.outputHeight * g.inputHeight * g.inputWidth * g.groups;
    const auto top = static_cast<int64_t>(line % g.outputHeight * g.strideHeight) - g.top;
    const auto left = static_cast<int64_t>(first * g.strideWidth) - g.left;
    const auto isIn = [](int64_t at, size_t size) {
      return at >= 0 && at < static_cast<int64_t>(size);
    };
    const Place& corner = places_.back();
    const size_t right = corner.x * g.dilationWidth + (count - 1) * g.strideWidth;
    if (isIn(top, g.inputHeight) &&
        corner.y * g.dilationHeight < g.inputHeight - static_cast<size_t>(top) &&
        isIn(left, g.inputWidth) && right < g.inputWidth - static_cast<size_t>(left)) {
      const Element* const begin =
          image + (static_cast<size_t>(top) * g.inputWidth + static_cast<size_t>(left)) * g.groups;
      for (const size_t offset : offsets_) {
        for (size_t o = 0; o < count; ++o)
          inputs[o] = begin + offset + o * g.strideWidth * g.groups;
        inputs += kTogether;
      }
      return;
    }
    for (const Place& place : places_) {
      const int64_t y = top + static_cast<int64_t>(place.y * g.dilationHeight);
      int64_t x = left + static_cast<int64_t>(place.x * g.dilationWidth);
      for (size_t o = 0; o < count; ++o, x += g.strideWidth) {
        const bool isInside = isIn(y, g.inputHeight) && isIn(x, g.inputWidth);
        inputs[o] = isInside
                        ? image + (static_cast<size_t>(y) * g.inputWidth + static_cast<size_t>(x)) *
                                      g.groups
                        : padding_.data();
      }
      inputs += kTogether;
    }
  }

  std::vector<size_t> offsets_;         // of each place from the first one
  std::vector<const Element*> inputs_;  // for each thread
  const Element* source_ = nullptr;
  Element* destination_ = nullptr;
};

}  // namespace hearth::cpu
