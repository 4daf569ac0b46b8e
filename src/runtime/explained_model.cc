// SPDX-License-Identifier: Apache-2.0
#include "runtime/explained_model.h"

#include <utility>

namespace hearth::runtime {
namespace {

class ExplainedModel final : public hal::PreparedModel {
 public:
  explicit ExplainedModel(hal::StartReport report) : report_(std::move(report)) {}

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request /*request*/) override {
    return fail(ErrorCode::kBadState, "The model was not prepared, only its start was explained.");
  }
  hal::StartReport startReport() const override { return report_; }

 private:
  const hal::StartReport report_;
};

}  // namespace

std::shared_ptr<hal::PreparedModel> explainedModel(hal::StartReport report) {
  return std::make_shared<ExplainedModel>(std::move(report));
}

}  // namespace hearth::runtime
