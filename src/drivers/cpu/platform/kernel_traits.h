// SPDX-License-Identifier: Apache-2.0
// Known-answer tests of the kernel families that this XNNPACK gets wrong on some CPUs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace hearth::cpu {

// What is known about this CPU and changes how operations are planned.
struct KernelTraits {
  // int8 indirect GEMM computes a last tile of one row wrongly (AMX): run it as two rows.
  bool guardInt8OneRowTail = false;
  // That does not help on this CPU: leave the shapes that are wrong to the reference kernel.
  bool avoidInt8OneRowTail = false;
};

struct SelfTestResult {
  SelfTestResult() = default;
  explicit SelfTestResult(const KernelTraits& found);

  KernelTraits traits;
  std::vector<std::string> routedAround;  // for start reports
};

// Starts XNNPACK; only the first call of the process costs anything. kOpFailed when XNNPACK does
// not support this CPU. Thread-safe.
Status initializeXnnpack();

// Runs the tests. Use selfTest() of host_facts.h, which does so once for the process.
Result<SelfTestResult> runSelfTest();

}  // namespace hearth::cpu
