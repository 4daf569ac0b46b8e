// SPDX-License-Identifier: Apache-2.0
// Known-answer tests of the kernel families that this XNNPACK gets wrong on some CPUs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace hearth::cpu {

// Properties of this CPU that change how operations are lowered. Value type.
struct KernelTraits {
  // int8 indirect GEMM computes a last tile of one row wrongly (AMX): run that as two rows.
  bool guardInt8OneRowTail = false;
  // Two rows do not help on this CPU: leave such shapes to the reference kernel.
  bool avoidInt8OneRowTail = false;
};

struct SelfTestResult {
  SelfTestResult() = default;
  explicit SelfTestResult(const KernelTraits& found);

  KernelTraits traits;
  std::vector<std::string> routedAround;  // for start reports
};

// Initializes XNNPACK; only the first call of the process takes time. Error: kOpFailed when XNNPACK
// does not support this CPU. Thread-safe.
Status initializeXnnpack();

// Runs the tests. Callers use selfTest() of host_facts.h, which does this once for the process.
Result<SelfTestResult> runSelfTest();

}  // namespace hearth::cpu
