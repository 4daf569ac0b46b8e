// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/result.h"
#include "frontends/tflite/model_file.h"

namespace hearth::tflite {

// Leaves a graph the outputs of these names, in the order that they have, and the operations that
// lead to them or to its states. True if anything was left out. Errors: kNotFound for a name that
// no output has; those of graph::validate(), after which `graph` is of no use.
Result<bool> chooseOutputs(std::span<const char* const> names, ImportedGraph* graph);

}  // namespace hearth::tflite
