// SPDX-License-Identifier: Apache-2.0
// The failure of a command: one sentence for standard error and an exit code.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/result.h"
#include "hearth/hearth.hpp"

namespace hearth::tools {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

struct Failure {
  int exitCode = kExitFailure;
  std::string sentence;

  Failure(int code, std::string text) : exitCode(code), sentence(std::move(text)) {}
  Failure(const Error& error) : sentence(error.toString()) {}
  Failure(const Exception& exception) : sentence(exception.what()) {}
};

template <typename T>
using Outcome = std::expected<T, Failure>;

// A failure for a command line that asks for something impossible.
template <typename... Args>
std::unexpected<Failure> usage(std::format_string<Args...> format, Args&&... args) {
  return std::unexpected(
      Failure(kExitUsage, base::formatText(format, std::forward<Args>(args)...)));
}

}  // namespace hearth::tools
