// SPDX-License-Identifier: Apache-2.0
// The content of a .tflite file, for reports. Covers files that cannot be imported, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/model.h"

namespace hearth::tflite {

// A tensor as the file declares it.
struct TensorSummary {
  std::string name;
  std::string tfliteType;        // "FLOAT32", "INT8", …
  graph::Dimensions dimensions;  // 0 = unknown
  std::vector<float> scales;     // none, one, or one for each channel
  std::vector<int64_t> zeroPoints;
  uint64_t constantBytes = 0;  // 0 = not a constant
  bool isVariable = false;
};

// All operations of one kind and version in a subgraph.
struct OperationSummary {
  std::string name;  // "CONV_2D"; the custom code of a custom operation
  int32_t builtinCode = 0;
  bool isCustom = false;
  int32_t version = 1;
  size_t count = 0;
  size_t firstIndex = 0;     // position of the first one among the subgraph's operations
  bool isSupported = false;  // whether a translation exists
};

struct SubgraphSummary {
  std::string name;
  std::vector<TensorSummary> tensors;
  std::vector<uint32_t> inputs;  // indices into `tensors`
  std::vector<uint32_t> outputs;
  std::vector<OperationSummary> operations;  // in the order of their first use
  size_t operationCount = 0;
};

// A name that a signature gives to a tensor of its subgraph.
struct SignatureArgument {
  std::string name;
  uint32_t tensor = 0;
};

struct SignatureSummary {
  std::string key;
  uint32_t subgraph = 0;
  std::vector<SignatureArgument> inputs;
  std::vector<SignatureArgument> outputs;
};

struct ModelSummary {
  std::string description;
  uint32_t version = 0;
  uint64_t fileBytes = 0;
  uint64_t weightBytes = 0;  // of all buffers that tensors use; each is counted once
  std::vector<SubgraphSummary> subgraphs;
  std::vector<SignatureSummary> signatures;
};

}  // namespace hearth::tflite
