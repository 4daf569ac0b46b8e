// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "hal/device.h"
#include "tools/conformance/nntv_file.h"

namespace hearth::conformance {

struct CaseResult {
  enum class Outcome : uint32_t {
    kPassed,
    kFailed,
    kNotImplemented,  // an operation of the case has no definition at all
  };
  Outcome outcome = Outcome::kFailed;
  std::string message;  // why not passed
  // What the device runs each operation of the main graph on, in order; empty when it said nothing.
  std::vector<std::string> kernels;
};

const char* nameOf(CaseResult::Outcome outcome);

// Names of the operations of a case, each once, in order of appearance.
std::vector<std::string> operationsOf(const Case& testCase);

// Runs all variants that the flags of the case ask for, each computed twice on one execution.
CaseResult runCase(hal::Device& device, const Case& testCase);

}  // namespace hearth::conformance
