// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/model.h"

namespace hearth::drivers::support_library {

// What a device of a support library can be asked.
struct DeviceTerms {
  int64_t featureLevel = 31;            // NNAPI's, of operations and operand types
  std::vector<std::string> extensions;  // those that the device has
};

// Why NNAPI's functions cannot express each operation of the main subgraph, with the subgraphs that
// it refers to, for such a device; empty where they can. The model has passed graph::validate().
std::vector<std::string> inexpressibleOperations(const graph::Model& model,
                                                 const DeviceTerms& terms);

// The model without the main subgraph's operations that have a reason in `left` (one for each
// operation): what they would have written becomes an input, and what they would have read an
// output. Operands keep their indices; those that nothing uses any more stay, without a meaning.
graph::Model withoutOperations(const graph::Model& model, const std::vector<std::string>& left);

}  // namespace hearth::drivers::support_library
