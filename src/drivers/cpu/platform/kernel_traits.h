// SPDX-License-Identifier: Apache-2.0
// Known-answer tests of the kernel families that this XNNPACK gets wrong on some CPUs.
#pragma once

#include <cstddef>
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

// Whether so many rows end in a tile of one row in one of XNNPACK's int8 kernels for such CPUs,
// whose tiles have 7 or 16 rows.
constexpr bool endsInOneRow(size_t rows) {
  return (rows > 7 && rows % 7 == 1) || (rows > 16 && rows % 16 == 1);
}

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
