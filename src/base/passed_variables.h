// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

namespace hearth::base {

// Those of the environment's variables with these names that are set, as NAME=VALUE: for a process
// that this one starts, since Hearth does not read them itself (base/env.h). None in a process with
// more rights than its starter. Thread-safe while nobody calls setenv.
std::vector<std::string> passedVariables(std::span<const std::string> names);

}  // namespace hearth::base
