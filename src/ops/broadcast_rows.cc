// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast_rows.h"

namespace hearth::ops {

template <size_t kInputs>
void visitBroadcastRows(threads::ThreadPool* pool, const Dimensions& output,
                        const std::array<const Dimensions*, kInputs>& inputs,
                        void (*visit)(const void* arguments, const BroadcastRow<kInputs>& row),
                        const void* arguments) {
  struct Loop {
    size_t size = 1;
    std::array<size_t, kInputs> strides{};
  };
  // Goes from the last dimension to the first and merges those that all inputs traverse evenly.
  std::vector<Loop> loops;
  std::array<size_t, kInputs> strides;
  strides.fill(1);
  for (size_t d = 0; d < output.size(); ++d) {
    Loop loop;
    loop.size = output[output.size() - 1 - d];
    if (loop.size == 0) return;
    for (size_t n = 0; n < kInputs; ++n) {
      const Dimensions& input = *inputs[n];
      const size_t size = d < input.size() ? input[input.size() - 1 - d] : 1;
      loop.strides[n] = size == 1 ? 0 : strides[n];
      strides[n] *= size;
    }
    if (loop.size == 1) continue;
    bool isEven = !loops.empty();
    for (size_t n = 0; isEven && n < kInputs; ++n)
      isEven = loop.strides[n] == loops.back().strides[n] * loops.back().size;
    if (isEven)
      loops.back().size *= loop.size;
    else
      loops.push_back(loop);
  }
  if (loops.empty()) loops.emplace_back();
  const Loop inner = loops.front();
  size_t rows = 1;
  for (size_t i = 1; i < loops.size(); ++i) rows *= loops[i].size;
  // The grain counts elements, whatever their size.
  constexpr size_t kPart = 1 << 14;
  const size_t partsOfRow = (inner.size + kPart - 1) / kPart;
  threads::forRanges(pool, rows * partsOfRow, std::max<size_t>(1, kPart / inner.size),
                     [&](uint64_t begin, uint64_t end) {
                       for (uint64_t part = begin; part < end; ++part) {
                         const size_t from = part % partsOfRow * kPart;
                         size_t position = part / partsOfRow;
                         BroadcastRow<kInputs> row;
                         row.first = position * inner.size + from;
                         row.count = std::min(kPart, inner.size - from);
                         row.step = inner.strides;
                         for (size_t n = 0; n < kInputs; ++n) row.at[n] = from * inner.strides[n];
                         for (size_t i = 1; i < loops.size(); ++i) {
                           const size_t index = position % loops[i].size;
                           position /= loops[i].size;
                           for (size_t n = 0; n < kInputs; ++n)
                             row.at[n] += index * loops[i].strides[n];
                         }
                         visit(arguments, row);
                       }
                     });
}

template void visitBroadcastRows<2>(threads::ThreadPool* pool, const Dimensions& output,
                                    const std::array<const Dimensions*, 2>& inputs,
                                    void (*visit)(const void* arguments,
                                                  const BroadcastRow<2>& row),
                                    const void* arguments);
template void visitBroadcastRows<3>(threads::ThreadPool* pool, const Dimensions& output,
                                    const std::array<const Dimensions*, 3>& inputs,
                                    void (*visit)(const void* arguments,
                                                  const BroadcastRow<3>& row),
                                    const void* arguments);

}  // namespace hearth::ops
