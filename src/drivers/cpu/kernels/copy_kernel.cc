// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/copy_kernel.h"

#include <utility>

#include "ops/strided_copy.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

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
      const bool isInPlace = at.source == at.destination &&
                             (copy.rows == 1 || copy.sourceStride == copy.destinationStride);
      if (copy.bytes == 0 || isInPlace) continue;
      threads::forRanges(
          pool, copy.rows, threads::grainOf(copy.bytes), [&](uint64_t begin, uint64_t end) {
            ops::copyPieces(copy.bytes, end - begin, at.source + begin * copy.sourceStride,
                            copy.sourceStride, at.destination + begin * copy.destinationStride,
                            copy.destinationStride);
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

}  // namespace

Result<std::unique_ptr<Kernel>> makeCopyKernel(std::vector<BlockCopy> copies) {
  return std::make_unique<CopyKernel>(std::move(copies));
}

}  // namespace hearth::cpu
