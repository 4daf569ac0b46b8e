// SPDX-License-Identifier: Apache-2.0
// Known-answer tests of the kernel families that this XNNPACK gets wrong on some CPUs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "drivers/cpu/plan_builder.h"

namespace hearth::cpu {

struct SelfTestResult {
  KernelTraits traits;
  std::vector<std::string> routedAround;  // for start reports
};

// Initialises XNNPACK and runs the tests once for the process; thread-safe. kOpFailed when
// XNNPACK does not support this CPU.
const Result<SelfTestResult>& selfTest();

}  // namespace hearth::cpu
