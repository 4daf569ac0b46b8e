// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "runtime/compilation.h"

namespace hearth::delegate {

// The options that a program passes to the delegate. Value type.
struct DelegateOptions {
  // Without threads, a cache and a deadline, which depend on the interpreter and the partition.
  runtime::CompilationOptions compilation;
  unsigned threads = 0;  // 0 = as many as the interpreter's
  bool allowsFp16 = false;
  std::string cacheFolder;  // empty = no compilation cache
  std::string modelToken;

  // Reads names and values; docs/delegate.md lists them. kBadData for an unknown name, with a list
  // of the known ones, for a name that is given twice, and for an invalid value; kNotFound for a
  // device that does not exist.
  static Result<DelegateOptions> parse(
      std::span<const std::pair<std::string_view, std::string_view>> texts);
};

}  // namespace hearth::delegate
