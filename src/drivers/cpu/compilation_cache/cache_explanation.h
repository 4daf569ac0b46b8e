// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/model.h"
#include "hal/cache_explainer.h"

namespace hearth::cpu {

// hal::CacheExplainer::explainCache of hearth-cpu.
hal::CacheVerdict explainCache(const graph::Model& model, const hal::PrepareOptions& options,
                               const hal::Cache& cache);

// Whether two models have the same operations on operands of the same types, wired alike, with
// equal constants up to 64 bytes; larger constants count by their size. The order of the operands
// and where constants lie do not count.
bool isSameStructure(const graph::Model& a, const graph::Model& b);

}  // namespace hearth::cpu
