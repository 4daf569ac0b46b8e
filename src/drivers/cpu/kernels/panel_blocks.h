// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

namespace hearth::cpu {

// Into how many blocks the panels of a product are divided, whose rows are divided into `chunks`:
// into at least `least`, and on several threads into as many as give each thread `tasksPerThread`
// tasks; but each block has a panel.
inline size_t panelBlocks(size_t panels, size_t least, size_t chunks, size_t threads,
                          size_t tasksPerThread) {
  size_t blocks = std::max<size_t>(least, 1);
  if (threads > 1) blocks = std::max(blocks, (threads * tasksPerThread + chunks - 1) / chunks);
  return std::min(blocks, panels);
}

}  // namespace hearth::cpu
