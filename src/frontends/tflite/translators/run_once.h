// SPDX-License-Identifier: Apache-2.0
// The subgraph that CALL_ONCE runs before all else.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/translators/table_operands.h"

namespace hearth::tflite {

// The bytes of resource variables, by name.
using ResourceValues = std::map<std::string, std::vector<uint8_t>>;

// Adds the constants that a subgraph of the file assigns to resources to `values`, and fills the
// hash tables that it fills. kUnsupported when the subgraph does anything else, or takes values
// that are no constants; kBadData for a subgraph that does not exist.
Status readRunOnce(SubgraphBuilder& builder, int64_t subgraph, ResourceValues* values,
                   TableOperandMap* filled);

}  // namespace hearth::tflite
