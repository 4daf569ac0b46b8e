// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace hearth::llm {

// The normalisation forms C and D of Unicode (UAX #15) of valid UTF-8.
std::string composed(std::string_view text);
std::string decomposed(std::string_view text);

}  // namespace hearth::llm
