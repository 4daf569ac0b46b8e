// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/attention.h"

#include <algorithm>
#include <array>

#include "drivers/cpu/microkernels/attention_block.h"
#include "threads/parallel_ranges.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

// With fewer rows, packing the keys takes longer than it saves.
constexpr size_t kWorthPacking = 16;

struct Arguments {
  ops::AttentionParameters parameters;
  ValueId queries = 0, keys = 0, values = 0, mask = 0, output = 0;
  bool hasMask = false;
  // Elements of the mask from one index to the next along [batches, heads, queries, keys].
  std::array<size_t, 4> maskStrides{};
};

class AttentionKernel final : public Kernel {
 public:
  explicit AttentionKernel(const Arguments& arguments) : arguments_(arguments) {
    const ops::AttentionParameters& p = arguments_.parameters;
    rows_ = size_t{p.heads / p.groups} * p.queries;
    isPacked_ = rows_ >= kWorthPacking && p.keys >= kKeyPanel / 2;
    const std::array<size_t, 3> dimensions = {p.batches, p.heads, p.queries};
    for (size_t i = dimensions.size(); i-- > 0;) {
      rangeStrides_[i] = arguments_.maskStrides[i] == 0 ? 0 : rangeCount_;
      if (rangeStrides_[i] != 0) rangeCount_ *= dimensions[i];
    }
  }

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    const ops::AttentionParameters& p = arguments_.parameters;
    const size_t threads = threads::threadsOf(pool);
    // Smaller blocks give all threads work when a single token is decoded.
    while (rowsPerBlock_ > 1 && size_t{p.batches} * p.groups * blocks() < threads)
      rowsPerBlock_ /= 2;
    ranges_.assign(arguments_.hasMask ? rangeCount_ : 0, {});
    logitsPerThread_ = kAttentionRows * logitsStride(p.keys);
    const size_t groups = size_t{p.batches} * p.groups;
    const size_t packed =
        isPacked_ ? groups * (paddedKeys(p.keys) * p.size + packedValuesSize(p.keys, p.valueSize))
                  : 0;
    return (threads * logitsPerThread_ + packed) * sizeof(float);
  }

  Status setup(std::span<void* const> at, void* workspace) override {
    queries_ = static_cast<const float*>(at[arguments_.queries]);
    keys_ = static_cast<const float*>(at[arguments_.keys]);
    values_ = static_cast<const float*>(at[arguments_.values]);
    mask_ = arguments_.hasMask ? static_cast<const float*>(at[arguments_.mask]) : nullptr;
    output_ = static_cast<float*>(at[arguments_.output]);
    workspace_ = static_cast<float*>(workspace);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const ops::AttentionParameters& p = arguments_.parameters;
    const size_t threads = threads::threadsOf(pool);
    packed_ = workspace_ + threads * logitsPerThread_;
    used_ = {0, p.keys};
    if (mask_ != nullptr) findRanges(pool);
    const size_t groups = size_t{p.batches} * p.groups;
    if (isPacked_) {
      const size_t panels = paddedKeys(used_.end - used_.begin) / kKeyPanel;
      threads::forRanges(pool, groups * panels,
                         threads::grainOf(kKeyPanel * (p.size + p.valueSize) * sizeof(float)),
                         [&](uint64_t begin, uint64_t end) {
                           for (uint64_t i = begin; i < end; ++i) packPanel(i / panels, i % panels);
                         });
    }
    const auto task = [&](size_t index, size_t thread) {
      const size_t group = index / blocks();
      runBlock(group / p.groups, group % p.groups, index % blocks() * rowsPerBlock_, thread);
    };
    threads::forTasks(pool, groups * blocks(), task);
    return {};
  }

 private:
  size_t blocks() const { return (rows_ + rowsPerBlock_ - 1) / rowsPerBlock_; }
  size_t keyStride() const {
    return size_t{arguments_.parameters.groups} * arguments_.parameters.size;
  }
  const float* keysOf(size_t batch, size_t group) const {
    const ops::AttentionParameters& p = arguments_.parameters;
    return keys_ + batch * p.keys * keyStride() + group * p.size;
  }
  size_t rangeOf(size_t batch, size_t head, size_t query) const {
    return batch * rangeStrides_[0] + head * rangeStrides_[1] + query * rangeStrides_[2];
  }
  const float* maskOf(size_t batch, size_t head, size_t query) const {
    const auto& strides = arguments_.maskStrides;
    return mask_ + batch * strides[0] + head * strides[1] + query * strides[2];
  }

  // Finds the range of keys that each row of the mask leaves, and the range of all rows together.
  void findRanges(threads::ThreadPool* pool) {
    const ops::AttentionParameters& p = arguments_.parameters;
    const auto countOf = [&](size_t dimension, size_t size) {
      return rangeStrides_[dimension] == 0 ? size_t{1} : size;
    };
    const size_t heads = countOf(1, p.heads);
    const size_t queries = countOf(2, p.queries);
    threads::forRanges(pool, ranges_.size(), threads::grainOf(p.keys * sizeof(float)),
                       [&](uint64_t begin, uint64_t end) {
                         for (uint64_t i = begin; i < end; ++i) {
                           const float* mask =
                               maskOf(i / queries / heads, i / queries % heads, i % queries);
                           ranges_[i] = seenKeys(mask, arguments_.maskStrides[3], p.keys);
                         }
                       });
    used_ = {p.keys, 0};
    for (const KeyRange& range : ranges_) include(&used_, range);
    if (used_.begin >= used_.end) used_ = {};
  }

  static void include(KeyRange* all, const KeyRange& range) {
    if (range.begin >= range.end) return;
    all->begin = std::min(all->begin, range.begin);
    all->end = std::max(all->end, range.end);
  }

  float* packedOf(size_t group) const {
    const ops::AttentionParameters& p = arguments_.parameters;
    return packed_ + group * paddedKeys(p.keys) * p.size;
  }

  float* packedValuesOf(size_t group) const {
    const ops::AttentionParameters& p = arguments_.parameters;
    return packed_ + size_t{p.batches} * p.groups * paddedKeys(p.keys) * p.size +
           group * packedValuesSize(p.keys, p.valueSize);
  }

  size_t valueStride() const {
    return size_t{arguments_.parameters.groups} * arguments_.parameters.valueSize;
  }
  const float* valuesOf(size_t batch, size_t group) const {
    const ops::AttentionParameters& p = arguments_.parameters;
    return values_ + batch * p.keys * valueStride() + group * p.valueSize;
  }

  // Packs one panel of keys and values; `group` counts over all batches.
  void packPanel(size_t group, size_t panel) const {
    const ops::AttentionParameters& p = arguments_.parameters;
    KeyRange range = used_;
    range.begin += static_cast<uint32_t>(panel * kKeyPanel);
    range.end = std::min(range.end, range.begin + static_cast<uint32_t>(kKeyPanel));
    packKeys(keysOf(group / p.groups, group % p.groups), keyStride(), p.size, range,
             packedOf(group) + panel * kKeyPanel * p.size);
    packValues(valuesOf(group / p.groups, group % p.groups), valueStride(), p.valueSize, range,
               used_.begin, p.keys, packedValuesOf(group));
  }

  void runBlock(size_t batch, size_t group, size_t first, size_t thread) const {
    const ops::AttentionParameters& p = arguments_.parameters;
    const size_t headsOfGroup = p.heads / p.groups;
    AttentionBlock block;
    block.rows = std::min(rowsPerBlock_, rows_ - first);
    block.keyStride = keyStride();
    block.valueStride = valueStride();
    block.maskStride = arguments_.maskStrides[3];
    block.keys = keysOf(batch, group);
    block.values = valuesOf(batch, group);
    block.logits = workspace_ + thread * logitsPerThread_;
    block.range = mask_ == nullptr ? used_ : KeyRange{p.keys, 0};
    if (isPacked_) {
      block.packedKeys = packedOf(batch * p.groups + group);
      block.packedValues = packedValuesOf(batch * p.groups + group);
      block.firstPacked = used_.begin;
    }
    for (size_t r = 0; r < kAttentionRows; ++r) {
      const size_t row = first + std::min(r, block.rows - 1);
      const size_t query = row / headsOfGroup;
      const size_t head = group * headsOfGroup + row % headsOfGroup;
      const size_t place = (batch * p.queries + query) * p.heads + head;
      block.queries[r] = queries_ + place * p.size;
      block.outputs[r] = output_ + place * p.valueSize;
      if (mask_ == nullptr) continue;
      block.masks[r] = maskOf(batch, head, query);
      include(&block.range, ranges_[rangeOf(batch, head, query)]);
    }
    attend(p, block);
  }

  const Arguments arguments_;
  size_t rows_ = 0;  // of a group: its heads with all queries, which share keys and values
  size_t rowsPerBlock_ = kAttentionRows;
  bool isPacked_ = false;
  size_t logitsPerThread_ = 0;
  std::vector<KeyRange> ranges_;  // of each row of the mask
  size_t rangeCount_ = 1;
  std::array<size_t, 3> rangeStrides_{};  // of ranges_ along batches, heads and queries
  KeyRange used_;
  const float* queries_ = nullptr;
  const float* keys_ = nullptr;
  const float* values_ = nullptr;
  const float* mask_ = nullptr;
  float* output_ = nullptr;
  float* workspace_ = nullptr;
  float* packed_ = nullptr;
};

}  // namespace

Result<bool> addAttention(PlanBuilder* builder, const Attention& attention) {
  for (const uint32_t operand :
       {attention.queries, attention.keys, attention.values, attention.mask, attention.output})
    if (operand != UINT32_MAX &&
        builder->operand(operand).type != graph::OperandType::kTensorFloat32)
      return false;
  Arguments arguments;
  arguments.parameters = attention.parameters;
  arguments.queries = builder->read(attention.queries);
  arguments.keys = builder->read(attention.keys);
  arguments.values = builder->read(attention.values);
  std::vector<ValueId> inputs = {arguments.queries, arguments.keys, arguments.values};
  if (attention.mask != UINT32_MAX) {
    arguments.hasMask = true;
    arguments.mask = builder->read(attention.mask);
    inputs.push_back(arguments.mask);
    const graph::Dimensions& mask = builder->tensor(attention.mask).dimensions;
    size_t stride = 1;
    for (size_t i = mask.size(); i-- > 0; stride *= mask[i])
      arguments.maskStrides[i + 4 - mask.size()] = mask[i] == 1 ? 0 : stride;
  }
  arguments.output = builder->write(attention.output);
  builder->add("own", std::move(inputs), {arguments.output}).create =
      [arguments]() -> Result<std::unique_ptr<Kernel>> {
    return std::make_unique<AttentionKernel>(arguments);
  };
  return true;
}

}  // namespace hearth::cpu
