// SPDX-License-Identifier: Apache-2.0
// What the driver tells the thread pool about the matrix product that XNNPACK runs next.
#pragma once

#include <cstddef>

#include "threads/export.h"

namespace hearth::threads {

// XNNPACK visits all columns of a few rows before the next rows, which streams the packed weights
// once per tile of rows. With a hint the pool visits all rows of a block of columns first, and
// chooses blocks that stay in the cache. Results are bitwise the same.
struct GemmHint {
  // Packed weights of one output column (of one group), bytes; 0 keeps XNNPACK's order.
  size_t packedBytesPerColumn = 0;
  // Output columns (of one group). Calls over another number of columns are not the product and
  // keep their order.
  size_t columns = 0;
  // Run a last tile of one row as two rows when tiles before it have more: some int8 kernels
  // compute such a row wrongly. The output must be followed by one more writable row (of all
  // groups), whose content is lost.
  bool guardOneRowTail = false;
};

// Sets the hint for parallel calls made by this thread while it lives, in place of an outer one.
// Stays on one thread.
class HEARTH_THREADS_EXPORT GemmHintScope {
 public:
  explicit GemmHintScope(const GemmHint& hint);
  ~GemmHintScope();
  GemmHintScope(const GemmHintScope&) = delete;
  GemmHintScope& operator=(const GemmHintScope&) = delete;

 private:
  GemmHint hint_;
  const GemmHint* outer_;
};

// The hint in force on this thread; null without one.
const GemmHint* currentGemmHint();

}  // namespace hearth::threads
