// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "llm/template_value.h"

namespace hearth::llm {

// How much a template may do: steps, and bytes of what it makes, in all. Whoever does work pays for
// it first.
class TemplateBudget {
 public:
  // For a template that is given values of this weight.
  explicit TemplateBudget(uint64_t weight);

  // Errors, all kBadData: more than is left.
  Status spend(uint64_t steps);
  Status allocate(uint64_t bytes);
  // For looking at all of a value.
  Status look(const TemplateValue& value) { return spend(1 + value.weight() / 8); }
  // A text that is made, paid for.
  Result<TemplateValue> text(std::string made);
  Result<TemplateValue> list(std::vector<TemplateValue> items, bool isTuple = false);

  // The most bytes that one text may have.
  size_t textLimit() const { return bytes_; }

 private:
  uint64_t steps_;
  uint64_t bytes_;
};

}  // namespace hearth::llm
