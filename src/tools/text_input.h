// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hearth/hearth.hpp"
#include "tools/failure.h"

namespace hearth::tools {

// The value of an input of strings.
struct TextInput {
  std::vector<std::string> texts;    // in row-major order
  std::vector<uint32_t> dimensions;  // those of the tensor, with none unknown
};

// Makes it from an argument of the command line, as textOfArgument() reads it. The text is one
// string without its last line end if the tensor has one element, else each line is a string. The
// first unknown dimension gets the size that the number of lines gives it, all others are 1. Errors
// name the tensor.
Outcome<TextInput> textInput(const std::string& argument, const TensorInfo& tensor);

// Strings as lines, for a file. A line end within a string stays as it is.
std::string linesOf(const std::vector<std::string>& texts);

}  // namespace hearth::tools
