// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"

namespace hearth::base {

std::string formatArguments(std::string_view format, std::format_args arguments) {
  return std::vformat(format, arguments);
}

}  // namespace hearth::base
