// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "memory/pool.h"
#include "runtime/compilation.h"

namespace hearth::runtime {

// Double buffer for the state tensors of one execution. A run reads the current side and writes the
// other, which becomes current only if the run succeeds. Used by one thread at a time.
class StateBuffers {
 public:
  // Starts at the initial values. Takes no memory if the compilation has no state. The compilation
  // must outlive the buffers.
  static Result<StateBuffers> create(const Compilation& compilation);

  // The side that the next run reads: 0 or 1.
  unsigned current() const { return current_; }
  void flip() {
    if (!slots_.empty()) current_ ^= 1;
  }
  void reset();

  // Sets the state arguments of a run that reads `side`. The request's lists must have their final
  // sizes.
  void bind(unsigned side, hal::Request* request) const;

 private:
  struct Slot {
    uint32_t input;
    uint32_t output;
    uint64_t offset;
    uint64_t length;
    const std::vector<uint8_t>* initialValue;  // of the compilation, which outlives this
  };

  std::vector<Slot> slots_;
  std::array<memory::PoolRef, 2> sides_;
  unsigned current_ = 0;
};

}  // namespace hearth::runtime
