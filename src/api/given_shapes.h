// SPDX-License-Identifier: Apache-2.0
// The option `shapes` of hearth_compile_options.
#pragma once

#include "base/result.h"
#include "frontends/tflite/model_file.h"
#include "hearth/hearth.h"

namespace hearth::api {

// Gives the inputs of a graph, which was imported with open shapes, those of the options. False if
// they had them before. Errors as in hearth.h.
Result<bool> giveShapes(const hearth_compile_options& options, tflite::ImportedGraph* graph);

}  // namespace hearth::api
