// SPDX-License-Identifier: Apache-2.0
// Loops that keep the result of each step as a row of a tensor.
#pragma once

#include "frontends/tflite/translators/model_builder.h"
#include "graph/model.h"

namespace hearth::tflite {

// TensorFlow's converter has no operator that writes row `i` of a tensor (TensorListSetItem, by
// which loops of Keras keep the result of each step). It writes SLICE up to the row, SLICE from
// `i` + 1 on, and CONCATENATION of the first slice, the new row and the second. As the shapes of
// the slices depend on the value of `i`, the loop could not be planned. Replaces these operations
// by a DYNAMIC_UPDATE_SLICE of a row, which computes the same and refuses the same `i`. Only where
// that is certain: every begin and size is seen, nothing else reads the slices, and `i` is not -1,
// for which the slices overlap: it counts the rounds of a loop, or the file says that the result
// has as many rows as the tensor, so that such an `i` is an error. `model` is that of the builder,
// with all its subgraphs; their operations may have any order.
void writeRowUpdates(ModelBuilder& builder, graph::Model* model);

}  // namespace hearth::tflite
