// SPDX-License-Identifier: Apache-2.0
#include "llm/template_arguments.h"

#include <algorithm>

namespace hearth::llm {

const TemplateValue* TemplateArguments::find(size_t position, std::string_view name) const {
  if (position < positional.size()) return &positional[position];
  for (const auto& [key, value] : named)
    if (key == name) return &value;
  return nullptr;
}

Result<int64_t> TemplateArguments::integer(size_t position, std::string_view name,
                                           int64_t otherwise) const {
  const TemplateValue* const value = find(position, name);
  if (value == nullptr || value->isNone()) return otherwise;
  if (const auto* const integer = value->asInteger()) return *integer;
  if (const auto* const truth = value->asBool()) return int64_t{*truth};
  return fail(ErrorCode::kBadData, "The argument {} of the chat template is {}, not an integer.",
              name, value->kindName());
}

Result<bool> TemplateArguments::boolean(size_t position, std::string_view name,
                                        bool otherwise) const {
  const TemplateValue* const value = find(position, name);
  return value == nullptr ? otherwise : value->isTrue();
}

Result<std::string> TemplateArguments::text(size_t position, std::string_view name,
                                            std::string_view otherwise) const {
  const TemplateValue* const value = find(position, name);
  if (value == nullptr || value->isNone()) return std::string(otherwise);
  if (const auto* const text = value->asText()) return *text;
  return fail(ErrorCode::kBadData, "The argument {} of the chat template is {}, not a string.",
              name, value->kindName());
}

Result<TemplateValue> TemplateArguments::needed(size_t position, std::string_view name) const {
  const TemplateValue* const value = find(position, name);
  if (value != nullptr) return *value;
  return fail(ErrorCode::kBadData, "The argument {} is missing in the chat template.", name);
}

Status TemplateArguments::check(std::string_view what,
                                std::initializer_list<std::string_view> names) const {
  if (positional.size() > names.size())
    return fail(ErrorCode::kBadData, "{} takes {} arguments, and is given {} in the chat template.",
                what, names.size(), positional.size());
  for (const auto& [key, value] : named)
    if (std::ranges::find(names, key) == names.end())
      return fail(ErrorCode::kBadData, "{} has no argument {}, which the chat template gives it.",
                  what, key);
  return {};
}

}  // namespace hearth::llm
