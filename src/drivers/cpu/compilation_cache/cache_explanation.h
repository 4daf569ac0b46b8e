// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/model.h"
#include "hal/cache_explainer.h"

namespace hearth::cpu {

// hal::CacheExplainer::explainCache() of hearth-cpu.
hal::CacheVerdict explainCache(const graph::Model& model, const hal::PrepareOptions& options,
                               const hal::Cache& cache);

// Whether two models have the same operations on operands of the same types, connected alike, with
// equal constants of less than 64 bytes. Of larger constants only the sizes are compared. The order
// of the operands and the places of constants do not matter.
bool isSameStructure(const graph::Model& a, const graph::Model& b);

}  // namespace hearth::cpu
