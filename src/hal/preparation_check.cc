// SPDX-License-Identifier: Apache-2.0
#include "hal/preparation_check.h"

#include "graph/validated_model.h"
#include "hal/request_check.h"

namespace hearth::hal {

Status checkDeadline(const PrepareOptions& options) {
  if (!options.deadline.hasPassed()) return {};
  return fail(ErrorCode::kMissedDeadlinePersistent,
              "The deadline has passed before the preparation.");
}

Status checkPreparation(const graph::Model* model, const PrepareOptions& options) {
  if (model == nullptr) return fail(ErrorCode::kUnexpectedNull, "The model is null.");
  HEARTH_TRY(checkDeadline(options));
  HEARTH_TRY(checkPoolsMapped(*model));
  return graph::validateOnce(*model);
}

}  // namespace hearth::hal
