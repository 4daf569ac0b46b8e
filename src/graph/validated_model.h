// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "base/result.h"
#include "graph/model.h"

namespace hearth::graph {

// A model that passed validate() and that nobody can change any more. Importer, runtime and driver
// each take no model that is not valid; of one of these they know it without looking again.
// Thread-safe.
class ValidatedModel final : public Model {
  struct Key {};

 public:
  // The error is that of validate().
  static Result<std::shared_ptr<const ValidatedModel>> of(Model model);
  // Null when `model` is none.
  static const ValidatedModel* from(const Model& model);

  ValidatedModel(Key, Model model);

  // Whether its operations passed their checks, too (ops::validateOperations()).
  bool areOperationsValid() const { return areOperationsValid_.load(std::memory_order_relaxed); }
  void setOperationsValid() const { areOperationsValid_.store(true, std::memory_order_relaxed); }

 private:
  mutable std::atomic<bool> areOperationsValid_ = false;
};

// As validate(), which a ValidatedModel has passed.
Status validateOnce(const Model& model);

}  // namespace hearth::graph
