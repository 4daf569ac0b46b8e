// SPDX-License-Identifier: Apache-2.0
#include "graph/validated_model.h"

#include <utility>

namespace hearth::graph {

ValidatedModel::ValidatedModel(Key, Model model) : Model(std::move(model)) {
  mark.isSet_ = true;
}

Result<std::shared_ptr<const ValidatedModel>> ValidatedModel::of(Model model) {
  HEARTH_TRY(validate(model));
  return std::make_shared<const ValidatedModel>(Key(), std::move(model));
}

const ValidatedModel* ValidatedModel::from(const Model& model) {
  return model.mark.isSet() ? static_cast<const ValidatedModel*>(&model) : nullptr;
}

Status validateOnce(const Model& model) {
  if (ValidatedModel::from(model) != nullptr) return {};
  return validate(model);
}

}  // namespace hearth::graph
