// SPDX-License-Identifier: Apache-2.0
// Kernels and shape inference read elements by typed pointers; clients and files may place them
// anywhere.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "graph/model.h"

namespace hearth::ops {

inline bool isAligned(const void* data, graph::OperandType type) {
  const size_t size = graph::elementSize(type);
  return size < 2 || reinterpret_cast<uintptr_t>(data) % size == 0;
}

// Copies of constants that lie at odd addresses. Used by one thread at a time.
class AlignedConstants {
 public:
  // `data` itself where its elements may be read in place; else a copy of its `bytes`, which is
  // valid as long as this object is, wherever it is moved, and until clear().
  void* aligned(void* data, graph::OperandType type, uint64_t bytes) {
    if (isAligned(data, type)) return data;
    std::vector<uint64_t>& copy = copies_.emplace_back((bytes + 7) / 8);
    std::memcpy(copy.data(), data, bytes);
    return copy.data();
  }

  void clear() { copies_.clear(); }

 private:
  std::vector<std::vector<uint64_t>> copies_;
};

}  // namespace hearth::ops
