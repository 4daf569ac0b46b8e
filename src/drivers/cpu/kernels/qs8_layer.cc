// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/qs8_layer.h"

#include "drivers/cpu/kernels/packed_bytes.h"
#include "drivers/cpu/kernels/qs8_tasks.h"
#include "drivers/cpu/microkernels/im2col.h"

namespace hearth::cpu {
namespace {

class Qs8LayerKernel final : public Qs8TaskKernel<Qs8Layer> {
 public:
  explicit Qs8LayerKernel(const Qs8Layer& layer)
      : Qs8TaskKernel(layer),
        windows_(layer.geometry, 1, static_cast<uint8_t>(layer.inputZero)),
        rowBytes_(windows_.windowBytes()),
        isDirect_(layer.geometry.isOverPixels()) {}

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    return tasks_.divide(threads::threadsOf(pool), windows_.windowCount(), rowBytes_);
  }

 private:
  void compute(size_t first, size_t last, size_t firstPanel, size_t lastPanel,
               uint8_t* scratch) const override {
    const size_t count = last - first;
    const int8_t* from = source_ + first * rowBytes_;
    if (!isDirect_) {
      windows_.gather(reinterpret_cast<const uint8_t*>(source_), first, last, scratch);
      from = reinterpret_cast<const int8_t*>(scratch);
    }
    makeUnsigned(from, count * rowBytes_, scratch);
    multiplyQs8(layer_.product, scratch, rowBytes_, count, firstPanel, lastPanel,
                destination_ + first * layer_.product.outputStride);
  }

  const Im2col windows_;
  const size_t rowBytes_;
  const bool isDirect_;
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
  return std::make_unique<Qs8LayerKernel>(layer);
}

}  // namespace hearth::cpu
