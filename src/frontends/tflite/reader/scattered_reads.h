// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "memory/pool.h"

namespace hearth::tflite {

// While this lives, a fault in a large mapped file brings in the page and not what lies around it.
// The tables of a model and the lengths of its buffers are a few bytes in each of many places, with
// the weights between them: reading around each place reads all weights, which a start from the
// weight store does not need. No two at a time on one pool; it outlives this.
class ScatteredReads {
 public:
  explicit ScatteredReads(const memory::Pool& pool);
  ~ScatteredReads();
  ScatteredReads(const ScatteredReads&) = delete;
  ScatteredReads& operator=(const ScatteredReads&) = delete;

  // Whether a byte of the file is in memory, as far as the kernel tells; true for small files.
  bool isResident(const void* byte) const;
  // Begins to read bytes of the file that will be needed, without waiting for them. Best effort.
  void begin(const void* data, size_t size) const;

 private:
  void advise(int advice) const;

  void* begin_ = nullptr;
  size_t size_ = 0;  // 0 for small files and memory of others
};

}  // namespace hearth::tflite
