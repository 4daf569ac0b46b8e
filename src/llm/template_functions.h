// SPDX-License-Identifier: Apache-2.0
// Jinja's filters, tests and methods of values.
#pragma once

#include <string>
#include <string_view>

#include "llm/template_arguments.h"
#include "llm/template_budget.h"
#include "llm/template_value.h"

namespace hearth::llm {

// Errors of all: kUnsupported for a name that is not known, kBadData for values that do not fit and
// for more work than the budget allows. They pay for what they do.
Result<TemplateValue> applyTemplateFilter(std::string_view name, const TemplateValue& value,
                                          const TemplateArguments& arguments,
                                          TemplateBudget* budget);
Result<bool> applyTemplateTest(std::string_view name, const TemplateValue& value,
                               const TemplateArguments& arguments, TemplateBudget* budget);
// Methods of strings, lists and dictionaries.
Result<TemplateValue> callTemplateMethod(const TemplateValue& value, std::string_view name,
                                         const TemplateArguments& arguments,
                                         TemplateBudget* budget);

// Whether a dictionary's method has this name.
bool isDictionaryMethod(std::string_view name);
// Whether Python's strings and lists have a method of this name, which callTemplateMethod() may not
// know.
bool isTextMethod(std::string_view name);
bool isListMethod(std::string_view name);

// The values that a loop over a value meets; of a string its characters, of a dictionary its keys.
Result<std::vector<TemplateValue>> itemsOf(const TemplateValue& value, TemplateBudget* budget);

// The item of a list or dictionary, or a character of a string; undefined where there is none.
Result<TemplateValue> itemOf(const TemplateValue& value, const TemplateValue& key,
                             TemplateBudget* budget);

// Below 0, 0 or above 0. Error: kBadData for values that have no order.
Result<int> compareValues(const TemplateValue& left, const TemplateValue& right,
                          TemplateBudget* budget);
// As Python's `in`.
Result<bool> isInValue(const TemplateValue& item, const TemplateValue& container,
                       TemplateBudget* budget);
// As Python's ==.
Result<bool> areEqualValues(const TemplateValue& left, const TemplateValue& right,
                            TemplateBudget* budget);
// As Python's str().
Result<std::string> textOfValue(const TemplateValue& value, TemplateBudget* budget);

}  // namespace hearth::llm
