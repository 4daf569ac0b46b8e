// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "tools/failure.h"

namespace hearth::tools {

// The text that an argument gives: itself, of `@FILE` the file's content, of `@-` or nothing the
// whole of standard input. At most 64 MiB.
Outcome<std::string> textOfArgument(const std::optional<std::string>& argument);

}  // namespace hearth::tools
