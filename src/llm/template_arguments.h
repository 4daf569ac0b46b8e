// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "llm/template_value.h"

namespace hearth::llm {

// The arguments of a call, a filter or a test.
struct TemplateArguments {
  std::vector<TemplateValue> positional;
  std::vector<std::pair<std::string, TemplateValue>> named;

  // The argument with this position and name; null where it is not given.
  const TemplateValue* find(size_t position, std::string_view name) const;

  // What is given, else a value in its place. Error: kBadData for a value of another kind.
  Result<int64_t> integer(size_t position, std::string_view name, int64_t otherwise) const;
  Result<bool> boolean(size_t position, std::string_view name, bool otherwise) const;
  Result<std::string> text(size_t position, std::string_view name,
                           std::string_view otherwise) const;
  // Error: kBadData where it is not given.
  Result<TemplateValue> needed(size_t position, std::string_view name) const;

  // Error: kBadData where more are given than `names`, or one with another name. `what` is for the
  // message.
  Status check(std::string_view what, std::initializer_list<std::string_view> names) const;
};

}  // namespace hearth::llm
