// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"
#include "graph/model.h"
#include "tools/conformance/nnapi_handles.h"

namespace hearth::conformance {

// A model of the C API with the models and memories that it refers to.
struct NnapiModel {
  std::vector<MemoryHandle> memories;  // of constants, by pool
  std::vector<ModelHandle> models;     // by subgraph; the main one first

  ANeuralNetworksModel* main() const { return models.front().get(); }
};

// Builds and finishes a model by calls of the C API: small constants by value, constants in pools
// through memories, subgraphs as models. Pools must have descriptors. Fails with the error of the
// first call that fails.
Status buildNnapiModel(const graph::Model& graph, NnapiModel* built);

}  // namespace hearth::conformance
