// SPDX-License-Identifier: Apache-2.0
// Shapes that a file leaves out. Converters of TensorFlow 1 and 2.0 wrote tensors whose shape they
// did not know as [], like scalars; TensorFlow Lite lets the operation say the shape.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "graph/model.h"

namespace hearth::tflite {

// Gives those outputs of `operation` that are in `unsaid` the shape that the operation computes
// from its inputs: rank 0 where that fits, else what the inputs give. Their rank becomes unknown
// where the shape depends on values or shapes known only at run time. They stay of rank 0 where the
// operation is wrong in other ways, which is reported when the model is validated.
void setUnsaidShapes(const graph::Model& model, graph::Subgraph* subgraph,
                     const graph::Operation& operation, const std::set<uint32_t>& unsaid);

// The outputs of an operation that computes a few numbers from constants, as models compute
// shapes; nothing for other operations. The result lists the bytes of each output.
std::optional<std::vector<std::vector<uint8_t>>> computedShape(const graph::Model& model,
                                                               const graph::Subgraph& subgraph,
                                                               const graph::Operation& operation);

}  // namespace hearth::tflite
