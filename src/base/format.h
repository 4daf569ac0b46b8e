// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <format>
#include <string>
#include <utility>

namespace hearth::base {

// Formats arguments that were already checked.
std::string formatArguments(std::string_view format, std::format_args arguments);

// Like std::format, and checked at compile time in the same way. std::format makes the compiler
// instantiate the whole formatter in every source that calls it, which takes more than two thirds
// of the time to compile a small source.
template <typename... Args>
std::string formatText(std::format_string<Args...> format, Args&&... args) {
  return formatArguments(format.get(), std::make_format_args(args...));
}

}  // namespace hearth::base
