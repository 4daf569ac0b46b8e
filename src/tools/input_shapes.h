// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/failure.h"

namespace hearth::tools {

inline constexpr const char* kShapeHelp =
    "Another shape of an input, such as image=4,224,224,3 (the file's); may be repeated";

// Shapes by the names of inputs, from texts such as "image=4,224,224,3". Without a name the shape
// is that of the only input.
Outcome<std::map<std::string, std::vector<uint32_t>>> parseInputShapes(
    const std::vector<std::string>& texts);

}  // namespace hearth::tools
