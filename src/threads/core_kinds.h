// SPDX-License-Identifier: Apache-2.0
// The kinds of cores of a processor that has big and little ones, as cpuinfo numbers them. XNNPACK
// has kernels for each kind on ARM, and asks on which kind a tile runs.
#pragma once

#include <cstdint>

namespace hearth::threads {

struct CoreKinds {
  uint32_t fallback = 0;  // taken when the kind is not known or greater than `greatest`
  uint32_t greatest = 0;

  // The number of the kind of core that the calling thread runs on now. It may be moved at any
  // time: kernels of other kinds give the same results, only later.
  uint32_t current() const;
};

}  // namespace hearth::threads
