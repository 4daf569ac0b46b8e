// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/failure.h"

namespace hearth::tools {

// The function that a library of custom operators exports. It registers them with
// hearth_custom_operator_register and returns HEARTH_OK, or the failure with its error:
//
//   hearth_status hearth_register_custom_operators(hearth_error** error);
inline constexpr char kRegisterFunction[] = "hearth_register_custom_operators";

// Loads the libraries in their order, for the life of the process, and lets each register its
// operators. A path without a slash is a file of the working folder.
Outcome<void> loadCustomOperators(const std::vector<std::string>& libraries);

}  // namespace hearth::tools
