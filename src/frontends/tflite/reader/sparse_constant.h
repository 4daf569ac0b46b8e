// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "graph/model.h"
#include "tflite_schema_generated.h"

namespace hearth::tflite {

// Returns the dense form of a sparse constant. `values` holds the stored elements; `sparsity` says
// which dimensions (or blocks of them) are stored as a whole and which by index. Errors: kBadData
// when these do not fit each other or `dimensions`; kUnsupported when an element is not a whole
// number of bytes. Work and memory are proportional to the dense size, which the caller bounds.
Result<std::vector<uint8_t>> densify(const schema::SparsityParameters& sparsity,
                                     const graph::Dimensions& dimensions, size_t elementSize,
                                     std::span<const uint8_t> values);

}  // namespace hearth::tflite
