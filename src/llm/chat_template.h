// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "llm/template_syntax.h"
#include "llm/template_value.h"

namespace hearth::llm {

// A Jinja template that makes the text of a conversation. Templates come with strangers' models:
// the steps that they take, how deeply they nest, and what they make have limits. Immutable;
// thread-safe.
class ChatTemplate {
 public:
  using Variables = std::vector<std::pair<std::string, TemplateValue>>;

  // Error: kBadData for a template that is wrong, kUnsupported for one with unknown statements.
  static Result<ChatTemplate> parse(std::string_view source);

  // `variables` are what the template sees. Errors: kBadData where the template fails, or takes
  // more than it may; kUnsupported for functions that are not known.
  Result<std::string> render(Variables variables) const;

 private:
  std::shared_ptr<const StatementList> statements_;
};

// A value of JSON. Error: kBadData.
Result<TemplateValue> templateValueOfJson(std::string_view json);

}  // namespace hearth::llm
