// SPDX-License-Identifier: Apache-2.0
#include "tools/option_checks.h"

#include <string>

#include "base/env.h"
#include "base/format.h"

namespace hearth::tools {

CLI::Validator positiveSeconds() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        double seconds = 0;
        if (!CLI::detail::lexical_cast(text, seconds) || !(seconds > 0))
          return "The time limit " + text + " is no number of seconds above 0.";
        return "";
      },
      "SECONDS");
}

CLI::Validator byteCount(const char* flag) {
  return CLI::Validator(
      [flag](std::string& text) -> std::string {
        const auto bytes = base::parseBytes(flag, text);
        if (!bytes) return bytes.error().message();
        if (*bytes == 0) return base::formatText("The limit {} is 0; it is at least 1.", flag);
        text = std::to_string(*bytes);
        return "";
      },
      "BYTES");
}

}  // namespace hearth::tools
