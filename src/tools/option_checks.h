// SPDX-License-Identifier: Apache-2.0
// How the values of options are read that several commands have.
#pragma once

#include <CLI/CLI.hpp>

namespace hearth::tools {

// A number of seconds above 0.
CLI::Validator positiveSeconds();

// A number of bytes above 0 of the option `flag`; K, M and G are understood.
CLI::Validator byteCount(const char* flag);

}  // namespace hearth::tools
