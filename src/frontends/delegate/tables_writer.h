// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "frontends/delegate/partition_source.h"
#include "memory/pool.h"

namespace hearth::delegate {

// Whether the source states the shapes of the tensors that the partition computes.
enum class ShapeTrust {
  kStated,   // except for dimensions that the model leaves open
  kUnknown,  // only the rank is
};

// A .tflite model in memory whose buffers lie elsewhere.
struct WrittenTables {
  memory::PoolRef tables;
  std::vector<memory::PoolRef> values;  // for tflite::ModelFile::fromTables()
  std::vector<int32_t> tensors;         // the source's tensor of each tensor of the model
};

// Writes a partition as a model of one subgraph, whose inputs and outputs are the partition's. The
// same source gives the same bytes. kUnsupported when the tables would be too large.
Result<WrittenTables> writeTables(const PartitionSource& source, ShapeTrust trust);

}  // namespace hearth::delegate
