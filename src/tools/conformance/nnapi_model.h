// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"
#include "graph/model.h"
#include "tools/conformance/nnapi_handles.h"

namespace hearth::conformance {

// Models of the C API with what they refer to.
struct NnapiModel {
  std::vector<MemoryHandle> memories;  // of constants, by pool
  std::vector<ModelHandle> models;     // by subgraph; the main one first

  ANeuralNetworksModel* main() const { return models.front().get(); }
};

// Builds and finishes a model by calls of the C API: small constants by value, those in pools
// through memories, subgraphs as models. Pools must have descriptors. The first call that fails is
// the error.
Status buildNnapiModel(const graph::Model& graph, NnapiModel* built);

}  // namespace hearth::conformance
