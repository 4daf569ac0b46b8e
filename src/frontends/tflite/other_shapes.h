// SPDX-License-Identifier: Apache-2.0
// Models for other shapes of their inputs than the file has.
#pragma once

#include <span>

#include "base/result.h"
#include "frontends/tflite/model_file.h"

namespace hearth::tflite {

// The shape that the file was written with: that of the file in place of unknown dimensions.
graph::Dimensions declaredShape(const TensorInfo& input);

// Gives all inputs of a graph, which was imported with Shapes::kOpen, these shapes: complete, with
// no dimension of 0. The model, its inputs, outputs and the initial values of its states follow.
// Constants that hold a shape follow, too, where that is certain, and each element of a batch has
// the result that it has alone (ops::resize()). Errors: those of ops::specialize() and resize();
// `graph` is unchanged then.
Status followShapes(std::span<const graph::Dimensions> shapes, ImportedGraph* graph);

// The same, as TensorFlow Lite resizes inputs: all constants stay as they are, ranks may change,
// and shapes that depend on values stay unknown (ops::inferAgain()). Errors: those of inferAgain();
// `graph` is unchanged then.
Status inferShapesAgain(std::span<const graph::Dimensions> shapes, ImportedGraph* graph);

// Gives caches, which are inputs and outputs of one name, the layout [.., tokens, size] where they
// have [.., size, tokens] and the model allows it (ops::layOutByToken()). True if there are any.
// Errors: those of layOutByToken(); `graph` is of no use then.
Result<bool> layOutCachesByToken(ImportedGraph* graph);

}  // namespace hearth::tflite
