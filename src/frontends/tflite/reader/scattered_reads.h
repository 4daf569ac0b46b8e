// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "memory/pool.h"

namespace hearth::tflite {

// While this exists, a fault in a large mapped file reads one page and nothing around it. The
// tables of a model and the lengths of its buffers are a few bytes in each of many places, between
// the weights: reading around each place would read all weights, which a start from the weight
// store does not need. Only one at a time for one pool, which must outlive it.
class ScatteredReads {
 public:
  explicit ScatteredReads(const memory::Pool& pool);
  ~ScatteredReads();
  ScatteredReads(const ScatteredReads&) = delete;
  ScatteredReads& operator=(const ScatteredReads&) = delete;

  // Whether a byte of the file is in memory, as far as the kernel tells. True for small files.
  bool isResident(const void* byte) const;
  // Starts reading bytes that will be needed, without waiting for them. Best effort.
  void begin(const void* data, size_t size) const;

 private:
  void advise(int advice) const;

  void* begin_ = nullptr;
  size_t size_ = 0;  // 0 = a small file, or memory of somebody else
};

}  // namespace hearth::tflite
