// SPDX-License-Identifier: Apache-2.0
#include "llm/template_budget.h"

#include <algorithm>
#include <utility>

namespace hearth::llm {
namespace {

constexpr uint64_t kSpareTemplateSteps = 5'000'000;
constexpr uint64_t kSpareTemplateBytes = uint64_t{64} << 20;
// Templates look at a message, and copy it, a few times.
constexpr uint64_t kStepsPerWeight = 16;
constexpr uint64_t kBytesPerWeight = 32;
constexpr uint64_t kMostWeight = uint64_t{1} << 30;

}  // namespace

TemplateBudget::TemplateBudget(uint64_t weight)
    : steps_(kSpareTemplateSteps + kStepsPerWeight * std::min(weight, kMostWeight)),
      bytes_(kSpareTemplateBytes + kBytesPerWeight * std::min(weight, kMostWeight)) {}

Status TemplateBudget::spend(uint64_t steps) {
  if (steps > steps_) return fail(ErrorCode::kBadData, "The chat template takes too many steps.");
  steps_ -= steps;
  return {};
}

Status TemplateBudget::allocate(uint64_t bytes) {
  if (bytes > bytes_)
    return fail(ErrorCode::kBadData, "The chat template makes too much text or too large lists.");
  bytes_ -= bytes;
  return {};
}

Result<TemplateValue> TemplateBudget::text(std::string made) {
  HEARTH_TRY(allocate(sizeof(std::string) + made.size()));
  return TemplateValue(std::move(made));
}

Result<TemplateValue> TemplateBudget::list(std::vector<TemplateValue> items, bool isTuple) {
  HEARTH_TRY(allocate(sizeof(ListValue) + items.size() * sizeof(TemplateValue)));
  HEARTH_TRY(spend(1 + items.size()));
  return TemplateValue::list(std::move(items), isTuple);
}

}  // namespace hearth::llm
