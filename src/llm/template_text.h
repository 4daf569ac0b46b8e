// SPDX-License-Identifier: Apache-2.0
// What templates do with text: Python's methods of str, some of which are filters, too.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "llm/template_arguments.h"
#include "llm/template_budget.h"

namespace hearth::llm {

// Calls a method of str. Nothing for a method that str does not have here. Letters above ASCII keep
// their case.
Result<std::optional<TemplateValue>> callTextMethod(const std::string& text, std::string_view name,
                                                    const TemplateArguments& arguments,
                                                    TemplateBudget* budget);

// Without white space, or characters of `characters`, at its ends.
std::string_view stripText(std::string_view text, const std::string* characters, bool isLeft,
                           bool isRight);
std::string lowerText(std::string_view text);
std::string upperText(std::string_view text);

// The number of characters, and the bytes of characters from `begin` to before `end`, which are
// numbers of characters.
int64_t lengthOfText(std::string_view text);
std::string_view partOfText(std::string_view text, int64_t begin, int64_t end);

}  // namespace hearth::llm
