// SPDX-License-Identifier: Apache-2.0
#include "runtime/unprepared_model.h"

#include <utility>

namespace hearth::runtime {
namespace {

class UnpreparedModel final : public hal::PreparedModel {
 public:
  explicit UnpreparedModel(hal::StartReport report) : report_(std::move(report)) {}

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request /*request*/) override {
    return fail(ErrorCode::kBadState, "The model was not prepared, only its start was explained.");
  }
  hal::StartReport startReport() const override { return report_; }

 private:
  const hal::StartReport report_;
};

}  // namespace

std::shared_ptr<hal::PreparedModel> unpreparedModel(hal::StartReport report) {
  return std::make_shared<UnpreparedModel>(std::move(report));
}

}  // namespace hearth::runtime
