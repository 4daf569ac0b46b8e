// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "base/result.h"
#include "graph/model.h"

namespace hearth::graph {

// An immutable model that has passed validate(). Importer, runtime and driver each refuse an
// invalid model; this class spares them a second check. Thread-safe.
class ValidatedModel final : public Model {
  struct Key {};

 public:
  // Errors as validate().
  static Result<std::shared_ptr<const ValidatedModel>> of(Model model);
  // The model, to be changed: the object itself where it is a ValidatedModel that nobody else has,
  // and else a copy.
  static Model release(std::shared_ptr<const Model> model);
  // Null when `model` is not a ValidatedModel.
  static const ValidatedModel* from(const Model& model);

  ValidatedModel(Key, Model model);

  // Whether its operations have passed their checks, too (ops::validateOperations()).
  bool areOperationsValid() const { return areOperationsValid_.load(std::memory_order_relaxed); }
  void setOperationsValid() const { areOperationsValid_.store(true, std::memory_order_relaxed); }

 private:
  mutable std::atomic<bool> areOperationsValid_ = false;
};

// Like validate(), but skips a ValidatedModel.
Status validateOnce(const Model& model);

}  // namespace hearth::graph
