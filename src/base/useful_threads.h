// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <cstddef>
#include <string>

namespace hearth::base {

// Where the kernel tells what processors are worth. Tests name folders of their own.
struct ProcessorFiles {
  std::string processors = "/sys/devices/system/cpu";  // cpuN/cpu_capacity
  std::string ownGroup = "/proc/self/cgroup";
  std::string groups = "/sys/fs/cgroup";  // control groups of version 2: cpu.max
};

// How many threads a computation should have that may use the whole machine: as many as there are
// processors in `allowed` with at least half the capacity of the best one there, so that the little
// cores of a board are left to others; and no more than the quotas of the control groups pay for,
// rounded up. Files that cannot be read restrict nothing. At least 1. Thread-safe.
size_t usefulThreads(const cpu_set_t& allowed, const ProcessorFiles& files = {});

// The same for the processors that the calling thread may use.
size_t usefulThreads();

}  // namespace hearth::base
