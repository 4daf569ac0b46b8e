// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hearth::tools {

// Parses a whole number with a unit: s, m, h, d or w (seconds to weeks). `name` is for the message.
// Error: kBadData.
Result<std::chrono::seconds> parseDuration(std::string_view name, std::string_view text);

// An age in one unit, for people: "5 s", "3 min", "2 h", "9 d". A negative age is "0 s".
std::string ageText(std::chrono::nanoseconds age);

}  // namespace hearth::tools
