// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/qs8_layer.h"

#include "drivers/cpu/kernels/packed_bytes.h"
#include "drivers/cpu/kernels/qs8_tasks.h"
#include "drivers/cpu/microkernels/im2col.h"

namespace hearth::cpu {
namespace {

class Qs8LayerKernel final : public Kernel {
 public:
  explicit Qs8LayerKernel(const Qs8Layer& layer)
      : layer_(layer),
        windows_(layer.geometry, 1, static_cast<uint8_t>(layer.inputZero)),
        rowBytes_(windows_.windowBytes()) {
    const Convolution& g = layer_.geometry;
    isDirect_ = g.kernelHeight == 1 && g.kernelWidth == 1 && g.strideHeight == 1 &&
                g.strideWidth == 1 && g.top + g.bottom + g.left + g.right == 0;
  }

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    return tasks_.divide(threads::threadsOf(pool), windows_.windowCount(), rowBytes_);
  }

  Status setup(std::span<void* const> addresses, void* workspace) override {
    source_ = static_cast<const int8_t*>(addresses[layer_.source]);
    destination_ = static_cast<int8_t*>(addresses[layer_.destination]);
    scratch_ = static_cast<uint8_t*>(workspace);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    tasks_.run(
        pool, layer_.product.panels(), scratch_,
        [&](size_t first, size_t last, size_t firstPanel, size_t lastPanel, uint8_t* scratch) {
          compute(first, last - first, firstPanel, lastPanel, scratch);
        });
    return {};
  }

 private:
  void compute(size_t first, size_t count, size_t firstPanel, size_t lastPanel,
               uint8_t* scratch) const {
    const int8_t* from = source_ + first * rowBytes_;
    if (!isDirect_) {
      windows_.gather(reinterpret_cast<const uint8_t*>(source_), first, first + count, scratch);
      from = reinterpret_cast<const int8_t*>(scratch);
    }
    makeUnsigned(from, count * rowBytes_, scratch);
    multiplyQs8(layer_.product, scratch, rowBytes_, count, firstPanel, lastPanel,
                destination_ + first * layer_.product.outputStride);
  }

  const Qs8Layer layer_;
  const Im2col windows_;
  const size_t rowBytes_;
  bool isDirect_ = false;
  Qs8Tasks tasks_;
  uint8_t* scratch_ = nullptr;
  const int8_t* source_ = nullptr;
  int8_t* destination_ = nullptr;
};

}  // namespace

bool isQs8Layer(const Convolution& g) {
  // XNNPACK packs one channel to one channel as a depthwise convolution, and pads the channels of
  // each place of a window.
  const bool isOneToOne = g.groupInputChannels == 1 && g.groupOutputChannels == 1;
  return !g.isDepthwise && g.groups == 1 && !isOneToOne &&
         (g.kernelHeight * g.kernelWidth == 1 || g.groupInputChannels % kQs8Group == 0);
}

Result<std::unique_ptr<Kernel>> makeQs8LayerKernel(Qs8Layer layer,
                                                   std::span<const uint8_t> packed) {
  HEARTH_ASSIGN(const uint8_t* const panels,
                packedBytes(packed, layer.product.panels() * layer.product.panelBytes()));
  layer.product.packed = panels;
  return std::make_unique<Qs8LayerKernel>(layer);
}

}  // namespace hearth::cpu
