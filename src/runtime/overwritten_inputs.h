// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "hal/device.h"
#include "memory/pool.h"

namespace hearth::runtime {

// Whether an output of the request lies over an input: once it has been computed in part, it cannot
// be computed again. Errors as hal::joinMemories().
Result<bool> overwritesInputs(const hal::Request& request);

// Inputs of a request over which outputs are written, for whoever reads the inputs later than a
// driver does, which minds this by itself. What lies in the memory of a device is left as it is.
// Not thread-safe.
class OverwrittenInputs {
 public:
  OverwrittenInputs() = default;

  // Puts those inputs into memory of their own of which isRead(input, output) says so, for an
  // output that lies over them. Errors as hal::joinMemories() and memory::Pool::anonymous().
  static Result<OverwrittenInputs> take(hal::Request* request,
                                        const std::function<bool(size_t, size_t)>& isRead);

  // Copies them there. Before each computation. Returns how many bytes these are.
  uint64_t copy() const;

 private:
  struct Input {
    hal::Argument from;
    memory::PoolRef to;
  };
  std::vector<Input> inputs_;
};

}  // namespace hearth::runtime
