// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "memory/pool.h"
#include "runtime/compilation.h"

namespace hearth::runtime {

// The state tensors of one execution, twice: a run reads one side and writes the other, and only a
// run that succeeds makes the other side the current one. Used by one thread at a time.
class StateBuffers {
 public:
  // At their initial values. Needs no memory when the compilation has no state.
  static Result<StateBuffers> create(const Compilation& compilation);

  // Which side the next run reads: 0 or 1.
  unsigned current() const { return current_; }
  void flip() {
    if (!slots_.empty()) current_ ^= 1;
  }
  void reset();

  // Adds the arguments of a run that reads `side`; requests are sized already.
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
