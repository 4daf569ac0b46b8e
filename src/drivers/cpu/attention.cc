// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "threads/thread_pool.h"

namespace hearth::cpu {
namespace {

// Rows of queries that go over the keys together, so that each key is loaded once for all.
constexpr size_t kRows = 4;
// Partial sums of a dot product, as many as the widest registers hold twice.
constexpr size_t kLanes = 32;

// Where one block of rows lies. Rows beyond the last repeat it and are not stored.
struct Block {
  std::array<const float*, kRows> queries;
  std::array<const float*, kRows> masks;  // null: no mask
  std::array<float*, kRows> outputs;
  size_t rows = 0;
  const float* keys = nullptr;  // of the first position
  const float* values = nullptr;
  size_t keyStride = 0;  // from one position to the next, in elements, as the two below
  size_t valueStride = 0;
  size_t maskStride = 0;
  float* logits = nullptr;  // [kRows][keys]
};

using BlockFunction = void (*)(const ops::AttentionParameters&, const Block&);

// Compiled once for each instruction set.
[[gnu::always_inline]] inline void dots(const Block& block, const float* key, size_t size,
                                        float (&results)[kRows]) {
  float sums[kRows][kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= size; i += kLanes)
    for (size_t r = 0; r < kRows; ++r)
      for (size_t lane = 0; lane < kLanes; ++lane)
        sums[r][lane] += block.queries[r][i + lane] * key[i + lane];
  for (size_t r = 0; r < kRows; ++r) {
    float total = 0.0f;
    for (size_t lane = 0; lane < kLanes; ++lane) total += sums[r][lane];
    for (size_t rest = i; rest < size; ++rest) total += block.queries[r][rest] * key[rest];
    results[r] = total;
  }
}

// In place; a row that the mask leaves nothing of becomes NaN, as its soft-max is.
[[gnu::always_inline]] inline void softmax(float* logits, size_t count) {
  float highest = -std::numeric_limits<float>::infinity();
  for (size_t s = 0; s < count; ++s) highest = std::max(highest, logits[s]);
  double sum = 0.0;
  for (size_t s = 0; s < count; ++s) {
    logits[s] = std::exp(logits[s] - highest);
    sum += logits[s];
  }
  const auto factor = static_cast<float>(1.0 / sum);
  for (size_t s = 0; s < count; ++s) logits[s] *= factor;
}

[[gnu::always_inline]] inline void attend(const ops::AttentionParameters& p, const Block& block) {
  constexpr float kMasked = -std::numeric_limits<float>::infinity();
  for (size_t s = 0; s < p.keys; ++s) {
    std::array<float, kRows> masks{};
    bool isSeen = block.masks[0] == nullptr;
    if (!isSeen) {
      for (size_t r = 0; r < kRows; ++r) {
        masks[r] = block.masks[r][s * block.maskStride];
        isSeen |= masks[r] != kMasked;
      }
    }
    float logits[kRows];
    if (isSeen) dots(block, block.keys + s * block.keyStride, p.size, logits);
    for (size_t r = 0; r < kRows; ++r) {
      float logit = kMasked;
      if (isSeen) {
        logit = p.scale * logits[r];
        if (p.logitCap > 0.0f) logit = p.logitCap * std::tanh(logit / p.logitCap);
        logit += masks[r];
      }
      block.logits[r * p.keys + s] = logit;
    }
  }
  for (size_t r = 0; r < block.rows; ++r) {
    softmax(block.logits + r * p.keys, p.keys);
    std::fill_n(block.outputs[r], p.valueSize, 0.0f);
  }
  for (size_t s = 0; s < p.keys; ++s) {
    const float* value = block.values + s * block.valueStride;
    for (size_t r = 0; r < block.rows; ++r) {
      const float weight = block.logits[r * p.keys + s];
      // Later positions of a causal mask; not NaN, which has to show.
      if (weight == 0.0f) continue;
      float* output = block.outputs[r];
      for (size_t i = 0; i < p.valueSize; ++i) output[i] += weight * value[i];
    }
  }
}

void attendPortable(const ops::AttentionParameters& p, const Block& block) {
  attend(p, block);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void attendAvx2(const ops::AttentionParameters& p,
                                                    const Block& block) {
  attend(p, block);
}
__attribute__((target("avx512f,avx512vl,fma,prefer-vector-width=512"))) void attendAvx512(
    const ops::AttentionParameters& p, const Block& block) {
  attend(p, block);
}
#endif

BlockFunction chooseFunction() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return attendAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return attendAvx2;
#endif
  return attendPortable;
}

struct Arguments {
  ops::AttentionParameters parameters;
  ValueId queries = 0, keys = 0, values = 0, mask = 0, output = 0;
  bool hasMask = false;
  // How far the mask moves for a step along each of [batches, heads, queries, keys].
  std::array<size_t, 4> maskStrides{};
};

class AttentionKernel final : public Kernel {
 public:
  explicit AttentionKernel(const Arguments& arguments)
      : arguments_(arguments), function_(chooseFunction()) {}

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    threads_ = pool == nullptr ? 1 : pool->threadCount();
    return threads_ * kRows * arguments_.parameters.keys * sizeof(float);
  }

  Status setup(std::span<void* const> at, void* workspace) override {
    queries_ = static_cast<const float*>(at[arguments_.queries]);
    keys_ = static_cast<const float*>(at[arguments_.keys]);
    values_ = static_cast<const float*>(at[arguments_.values]);
    mask_ = arguments_.hasMask ? static_cast<const float*>(at[arguments_.mask]) : nullptr;
    output_ = static_cast<float*>(at[arguments_.output]);
    logits_ = static_cast<float*>(workspace);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const ops::AttentionParameters& p = arguments_.parameters;
    // Heads of one group and all queries share keys and values.
    const size_t rows = size_t{p.heads / p.groups} * p.queries;
    const size_t blocks = (rows + kRows - 1) / kRows;
    const size_t tasks = size_t{p.batches} * p.groups * blocks;
    const auto task = [&](size_t index, size_t thread) {
      const size_t batch = index / blocks / p.groups;
      const size_t group = index / blocks % p.groups;
      runBlock(batch, group, index % blocks * kRows, rows, thread);
    };
    if (pool == nullptr) {
      for (size_t i = 0; i < tasks; ++i) task(i, 0);
    } else {
      pool->parallelFor(tasks, task);
    }
    return {};
  }

 private:
  void runBlock(size_t batch, size_t group, size_t first, size_t rows, size_t thread) const {
    const ops::AttentionParameters& p = arguments_.parameters;
    const size_t headsOfGroup = p.heads / p.groups;
    Block block;
    block.rows = std::min(kRows, rows - first);
    block.keyStride = size_t{p.groups} * p.size;
    block.valueStride = size_t{p.groups} * p.valueSize;
    block.maskStride = arguments_.maskStrides[3];
    block.keys = keys_ + batch * p.keys * block.keyStride + group * p.size;
    block.values = values_ + batch * p.keys * block.valueStride + group * p.valueSize;
    block.logits = logits_ + thread * kRows * p.keys;
    for (size_t r = 0; r < kRows; ++r) {
      const size_t row = first + std::min(r, block.rows - 1);
      const size_t query = row / headsOfGroup;
      const size_t head = group * headsOfGroup + row % headsOfGroup;
      const size_t place = (batch * p.queries + query) * p.heads + head;
      block.queries[r] = queries_ + place * p.size;
      block.outputs[r] = output_ + place * p.valueSize;
      const auto& strides = arguments_.maskStrides;
      block.masks[r] = mask_ == nullptr
                           ? nullptr
                           : mask_ + batch * strides[0] + head * strides[1] + query * strides[2];
    }
    function_(p, block);
  }

  const Arguments arguments_;
  const BlockFunction function_;
  size_t threads_ = 1;
  const float* queries_ = nullptr;
  const float* keys_ = nullptr;
  const float* values_ = nullptr;
  const float* mask_ = nullptr;
  float* output_ = nullptr;
  float* logits_ = nullptr;
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
