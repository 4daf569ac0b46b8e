// SPDX-License-Identifier: Apache-2.0
// What a thread knows of the model that it has validated last. Importer, runtime and driver each
// take no model that is not valid; in one process and on one thread they need not look three times.
#pragma once

#include <memory>

#include "graph/model.h"

namespace hearth::graph {

// `model` passed validate(), and nobody changes it any more.
void rememberValid(const std::shared_ptr<const Model>& model);
// As validate(), which is left out for the model that this thread remembers.
Status validateUnlessKnown(const Model& model);

// `model` passed the checks of its operations (ops::validateOperations()), too. Nothing happens
// when it is not the one that this thread remembers.
void rememberValidOperations(const Model& model);
bool areOperationsKnownValid(const Model& model);

}  // namespace hearth::graph
