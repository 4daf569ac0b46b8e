// SPDX-License-Identifier: Apache-2.0
#include "graph/validated_model.h"

#include <utility>

namespace hearth::graph {

ValidatedModel::ValidatedModel(Key, Model model) : Model(std::move(model)) {
  mark.isSet_ = true;
}

Result<std::shared_ptr<const ValidatedModel>> ValidatedModel::of(Model model) {
  HEARTH_TRY(validate(model));
  return std::make_shared<ValidatedModel>(Key(), std::move(model));
}

Model ValidatedModel::release(std::shared_ptr<const Model> model) {
  // of() has made the object, and not as a constant.
  if (from(*model) != nullptr && model.use_count() == 1)
    return std::move(const_cast<Model&>(*model));
  return *model;
}

const ValidatedModel* ValidatedModel::from(const Model& model) {
  return model.mark.isSet() ? static_cast<const ValidatedModel*>(&model) : nullptr;
}

Status validateOnce(const Model& model) {
  if (ValidatedModel::from(model) != nullptr) return {};
  return validate(model);
}

}  // namespace hearth::graph
