// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/attention_kernel.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "drivers/cpu/microkernels/portable/attention_block.h"
#include "threads/parallel_ranges.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

// With fewer rows, packing the keys takes longer than it saves.
constexpr size_t kWorthPacking = 16;

class AttentionKernel final : public Kernel {
 public:
  explicit AttentionKernel(std::shared_ptr<const AttentionLayout> layout)
      : owned_(std::move(layout)), layout_(*owned_) {
    isPacked_ = layout_.rowsPerGroup >= kWorthPacking && layout_.parameters.keys >= kKeyPanel / 2;
  }

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    const ops::AttentionParameters& p = layout_.parameters;
    const size_t threads = threads::threadsOf(pool);
    // Smaller blocks give all threads work when a single token is decoded.
    while (rowsPerBlock_ > 1 && layout_.groups() * blocks() < threads) rowsPerBlock_ /= 2;
    ranges_.assign(layout_.maskRowCount, {});
    isRowHidden_.assign(layout_.maskRowCount, 0);
    convertedMask_ = layout_.maskKind == MaskKind::kSum ? 0 : layout_.maskRowCount * maskWidth();
    logitsPerThread_ = kAttentionRows * logitsStride(p.keys);
    const size_t packed = isPacked_ ? layout_.groups() * (paddedKeys(p.keys) * p.size +
                                                          packedValuesSize(p.keys, p.valueSize))
                                    : 0;
    return (threads * logitsPerThread_ + packed + convertedMask_) * sizeof(float);
  }

  Status setup(std::span<void* const> at, void* workspace) override {
    queries_ = static_cast<const float*>(at[layout_.queries]);
    keys_ = static_cast<const float*>(at[layout_.keys]);
    values_ = static_cast<const float*>(at[layout_.values]);
    if (!layout_.maskRows.empty()) given_ = at[layout_.mask];
    mask_ = static_cast<const float*>(given_);
    output_ = static_cast<float*>(at[layout_.output]);
    workspace_ = static_cast<float*>(workspace);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const ops::AttentionParameters& p = layout_.parameters;
    float* const converted = workspace_ + threads::threadsOf(pool) * logitsPerThread_;
    packed_ = converted + convertedMask_;
    if (convertedMask_ != 0) mask_ = converted;
    used_ = {0, p.keys};
    if (mask_ != nullptr) findRanges(pool, converted);
    if (isPacked_) {
      const size_t panels = paddedKeys(used_.end - used_.begin) / kKeyPanel;
      threads::forRanges(pool, layout_.groups() * panels,
                         threads::grainOf(kKeyPanel * (p.size + p.valueSize) * sizeof(float)),
                         [&](uint64_t begin, uint64_t end) {
                           for (uint64_t i = begin; i < end; ++i) packPanel(i / panels, i % panels);
                         });
    }
    threads::forTasks(pool, layout_.groups() * blocks(), [&](size_t index, size_t thread) {
      runBlock(index / blocks(), index % blocks() * rowsPerBlock_, thread);
    });
    return {};
  }

 private:
  size_t blocks() const { return (layout_.rowsPerGroup + rowsPerBlock_ - 1) / rowsPerBlock_; }
  size_t maskWidth() const { return layout_.isMaskPerKey ? layout_.parameters.keys : 1; }
  const float* maskRow(size_t row) const { return mask_ + row * maskWidth(); }
  size_t maskStride() const { return layout_.isMaskPerKey ? 1 : 0; }

  // Writes numbers to be added for the booleans of a row.
  void convertRow(size_t row, float* numbers) const {
    const auto* const booleans = static_cast<const uint8_t*>(given_) + row * maskWidth();
    const bool isOpen = layout_.maskKind == MaskKind::kOpenWhereTrue;
    for (size_t s = 0; s < maskWidth(); ++s)
      numbers[s] = (booleans[s] != 0) == isOpen ? 0.0f : -std::numeric_limits<float>::infinity();
  }

  // Finds the range of keys that each row of the mask leaves, and the range of all rows together.
  // Masks of booleans become numbers at `converted`.
  void findRanges(threads::ThreadPool* pool, float* converted) {
    const uint32_t keys = layout_.parameters.keys;
    threads::forRanges(pool, ranges_.size(), threads::grainOf(keys * sizeof(float)),
                       [&](uint64_t begin, uint64_t end) {
                         for (uint64_t i = begin; i < end; ++i) {
                           if (convertedMask_ != 0) convertRow(i, converted + i * maskWidth());
                           ranges_[i] = seenKeys(maskRow(i), maskStride(), keys);
                           if (!layout_.isUniformWhereHidden) continue;
                           isRowHidden_[i] = ranges_[i].begin >= ranges_[i].end ? 1 : 0;
                           if (isRowHidden_[i] != 0) ranges_[i] = {0, keys};
                         }
                       });
    used_ = {keys, 0};
    for (const KeyRange& range : ranges_) include(&used_, range);
    if (used_.begin >= used_.end) used_ = {};
  }

  static void include(KeyRange* all, const KeyRange& range) {
    if (range.begin >= range.end) return;
    all->begin = std::min(all->begin, range.begin);
    all->end = std::max(all->end, range.end);
  }

  float* packedOf(size_t group) const {
    const ops::AttentionParameters& p = layout_.parameters;
    return packed_ + group * paddedKeys(p.keys) * p.size;
  }

  float* packedValuesOf(size_t group) const {
    const ops::AttentionParameters& p = layout_.parameters;
    return packed_ + layout_.groups() * paddedKeys(p.keys) * p.size +
           group * packedValuesSize(p.keys, p.valueSize);
  }

  AttentionValues valuesOf(size_t group) const {
    return {values_ + layout_.valueOffsets[group], layout_.valueStride,
            layout_.areValuesTransposed};
  }

  // Packs one panel of keys and values.
  void packPanel(size_t group, size_t panel) const {
    const ops::AttentionParameters& p = layout_.parameters;
    KeyRange range = used_;
    range.begin += static_cast<uint32_t>(panel * kKeyPanel);
    range.end = std::min(range.end, range.begin + static_cast<uint32_t>(kKeyPanel));
    packKeys(keys_ + layout_.keyOffsets[group], layout_.keyStride, p.size, range,
             packedOf(group) + panel * kKeyPanel * p.size);
    packValues(valuesOf(group), p.valueSize, range, used_.begin, p.keys, packedValuesOf(group));
  }

  void runBlock(size_t group, size_t first, size_t thread) const {
    const ops::AttentionParameters& p = layout_.parameters;
    AttentionBlock block;
    block.rows = std::min(rowsPerBlock_, layout_.rowsPerGroup - first);
    block.keyStride = layout_.keyStride;
    block.maskStride = maskStride();
    block.keys = keys_ + layout_.keyOffsets[group];
    block.values = valuesOf(group);
    block.logits = workspace_ + thread * logitsPerThread_;
    block.range = mask_ == nullptr ? used_ : KeyRange{p.keys, 0};
    if (isPacked_) {
      block.packedKeys = packedOf(group);
      block.packedValues = packedValuesOf(group);
      block.firstPacked = used_.begin;
    }
    for (size_t r = 0; r < kAttentionRows; ++r) {
      const size_t row = first + std::min(r, block.rows - 1);
      const size_t place = layout_.firstPlaces[group] +
                           row / layout_.placesPerRun * layout_.runStride +
                           row % layout_.placesPerRun;
      block.queries[r] = queries_ + place * p.size;
      block.outputs[r] = output_ + place * p.valueSize;
      if (mask_ == nullptr) continue;
      block.masks[r] = maskRow(layout_.maskRows[place]);
      block.areUniform[r] = isRowHidden_[layout_.maskRows[place]] != 0;
      include(&block.range, ranges_[layout_.maskRows[place]]);
    }
    attend(p, block);
  }

  const std::shared_ptr<const AttentionLayout> owned_;
  const AttentionLayout& layout_;
  size_t rowsPerBlock_ = kAttentionRows;
  bool isPacked_ = false;
  size_t logitsPerThread_ = 0;
  std::vector<KeyRange> ranges_;      // of each row of the mask
  std::vector<uint8_t> isRowHidden_;  // likewise: whether it is uniform
  size_t convertedMask_ = 0;          // numbers; 0 where the mask has numbers
  KeyRange used_;
  const float* queries_ = nullptr;
  const float* keys_ = nullptr;
  const float* values_ = nullptr;
  const void* given_ = nullptr;  // the mask
  const float* mask_ = nullptr;  // its numbers
  float* output_ = nullptr;
  float* workspace_ = nullptr;
  float* packed_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> makeAttentionKernel(std::shared_ptr<const AttentionLayout> layout) {
  return std::make_unique<AttentionKernel>(std::move(layout));
}

std::vector<uint32_t> repeatedRows(const ops::Dimensions& tensor, const ops::Dimensions& repeated) {
  const size_t missing = tensor.size() - repeated.size();
  std::vector<uint32_t> rows = {0};
  for (size_t i = 0; i + 1 < tensor.size(); ++i) {
    const uint32_t size = i < missing ? 1 : repeated[i - missing];
    std::vector<uint32_t> next;
    next.reserve(rows.size() * tensor[i]);
    for (const uint32_t row : rows)
      for (uint32_t d = 0; d < tensor[i]; ++d) next.push_back(row * size + d % size);
    rows = std::move(next);
  }
  return rows;
}

}  // namespace hearth::cpu
