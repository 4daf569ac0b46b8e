// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hal/device.h"
#include "tools/conformance/nntv_file.h"

namespace hearth::conformance {

struct OperationKernel {
  std::string operation;
  std::string kernel;  // empty when the device does not tell
};

struct CaseResult {
  bool hasPassed = false;
  std::string message;  // why not passed
  // The device's kernel for each operation of the main graph, in order; empty when the case failed
  // before.
  std::vector<OperationKernel> kernels;
};

// Names of the operations of a case, each once, in order of appearance.
std::vector<std::string> operationsOf(const Case& testCase);

// Runs all variants that the flags of the case ask for, each computed twice on one execution.
CaseResult runCase(hal::Device& device, const Case& testCase);

}  // namespace hearth::conformance
