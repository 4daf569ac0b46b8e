// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/qs8_layer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "drivers/cpu/kernels/byte_tasks.h"
#include "drivers/cpu/kernels/packed_bytes.h"
#include "drivers/cpu/kernels/padded_input.h"
#include "drivers/cpu/microkernels/portable/im2col.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

// Scratch memory for a copy of the input must stay small.
constexpr size_t kMostCopiedBytes = size_t{1} << 20;

// Whether most inputs lie under several windows, so that it pays to copy the input before it is
// read under them.
bool overlaps(const Convolution& g) {
  return uint64_t{g.kernelHeight} * g.kernelWidth > 2 * uint64_t{g.strideHeight} * g.strideWidth;
}

// Reads windows where they lie in a padded copy of the input.
class WindowsInPlaceKernel final : public ByteTaskKernel<Qs8Layer> {
 public:
  WindowsInPlaceKernel(const Qs8Layer& layer, PaddedInput input)
      : ByteTaskKernel(layer), input_(std::move(input)) {}

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    const Convolution& g = layer_.geometry;
    static_cast<void>(tasks_.divide(
        threads::threadsOf(pool), g.batch * g.outputHeight * g.outputWidth, layer_.product.inputs));
    return input_.bytes();
  }

  Status setup(std::span<void* const> addresses, void* workspace) override {
    padded_ = static_cast<uint8_t*>(workspace);
    return ByteTaskKernel::setup(addresses, workspace);
  }

  Status run(threads::ThreadPool* pool) override {
    threads::forRanges(
        pool, input_.lines(), threads::grainOf(input_.lineBytes()),
        [&](uint64_t begin, uint64_t end) { input_.fill(source_, begin, end, padded_); });
    return ByteTaskKernel::run(pool);
  }

 private:
  void compute(size_t first, size_t last, size_t firstPanel, size_t lastPanel,
               uint8_t*) const override {
    std::array<const uint8_t*, 8 * kQs8Rows> windows;
    while (first < last) {
      const size_t count = std::min(windows.size(), last - first);
      input_.findWindows(padded_, first, count, windows.data());
      multiplyQs8(layer_.product, {windows.data(), count}, input_.places(),
                  layer_.geometry.groupInputChannels, firstPanel, lastPanel,
                  destination_ + first * layer_.product.outputStride);
      first += count;
    }
  }

  const PaddedInput input_;
  uint8_t* padded_ = nullptr;
};

// Gathers the windows of each task, where there is one from a padded copy of the input, in which
// all windows lie as a whole.
class GatheredWindowsKernel final : public ByteTaskKernel<Qs8Layer> {
 public:
  GatheredWindowsKernel(const Qs8Layer& layer, std::optional<PaddedInput> input)
      : ByteTaskKernel(layer),
        input_(std::move(input)),
        windows_(input_ ? input_->geometry() : layer.geometry, 1,
                 static_cast<uint8_t>(layer.inputZero)),
        rowBytes_(windows_.windowBytes()),
        isDirect_(layer.geometry.isOverPixels()) {}

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    taskBytes_ = tasks_.divide(threads::threadsOf(pool), windows_.windowCount(), rowBytes_);
    return taskBytes_ + (input_ ? input_->bytes() : 0);
  }

  Status setup(std::span<void* const> addresses, void* workspace) override {
    padded_ = static_cast<uint8_t*>(workspace) + taskBytes_;
    return ByteTaskKernel::setup(addresses, workspace);
  }

  Status run(threads::ThreadPool* pool) override {
    if (input_)
      threads::forRanges(
          pool, input_->lines(), threads::grainOf(input_->lineBytes()),
          [&](uint64_t begin, uint64_t end) { input_->fill(source_, begin, end, padded_); });
    return ByteTaskKernel::run(pool);
  }

 private:
  void compute(size_t first, size_t last, size_t firstPanel, size_t lastPanel,
               uint8_t* scratch) const override {
    const size_t count = last - first;
    if (input_) {
      windows_.gather(padded_, first, last, scratch);
      multiply(first, count, firstPanel, lastPanel, scratch);
      return;
    }
    const int8_t* from = source_ + first * rowBytes_;
    if (!isDirect_) {
      windows_.gather(reinterpret_cast<const uint8_t*>(source_), first, last, scratch);
      from = reinterpret_cast<const int8_t*>(scratch);
    }
    makeUnsigned(from, count * rowBytes_, scratch);
    multiply(first, count, firstPanel, lastPanel, scratch);
  }

  void multiply(size_t first, size_t count, size_t firstPanel, size_t lastPanel,
                const uint8_t* rows) const {
    multiplyQs8(layer_.product, rows, rowBytes_, count, firstPanel, lastPanel,
                destination_ + first * layer_.product.outputStride);
  }

  const std::optional<PaddedInput> input_;
  const Im2col windows_;
  const size_t rowBytes_;
  const bool isDirect_;
  size_t taskBytes_ = 0;
  uint8_t* padded_ = nullptr;
};

}  // namespace

bool isQs8Layer(const Convolution& g, size_t group) {
  // XNNPACK packs one channel to one channel as a depthwise convolution, and pads the channels of
  // each place of a window.
  const bool isOneToOne = g.groupInputChannels == 1 && g.groupOutputChannels == 1;
  return !g.isDepthwise && g.groups == 1 && !isOneToOne &&
         (g.kernelHeight * g.kernelWidth == 1 || g.groupInputChannels % group == 0);
}

Result<std::unique_ptr<Kernel>> makeQs8LayerKernel(Qs8Layer layer,
                                                   std::span<const uint8_t> packed) {
  HEARTH_ASSIGN(const uint8_t* const panels,
                packedBytes(packed, layer.product.panels() * layer.product.panelBytes()));
  layer.product.packed = panels;
  std::optional<PaddedInput> input =
      overlaps(layer.geometry)
          ? PaddedInput::make(layer.geometry, layer.inputZero, kMostCopiedBytes)
          : std::nullopt;
  // A product reads pieces of whole groups.
  if (input && layer.geometry.groupInputChannels % kQs8Group == 0)
    return std::make_unique<WindowsInPlaceKernel>(layer, *std::move(input));
  return std::make_unique<GatheredWindowsKernel>(layer, std::move(input));
}

}  // namespace hearth::cpu
