// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "frontends/tflite/reader/file_operators.h"
#include "tflite_abi/tensors.h"

namespace hearth::tflite_c {

// What TfLiteNode::builtin_data points to: the operator's parameters in the structure that programs
// know, followed by zeros, for programs whose version of the structure is longer.
using NodeParameters = std::unique_ptr<void, tflite_abi::FreeMemory>;

// The parameters of IF and WHILE: the subgraphs that they call.
struct SubgraphParams {
  int32_t first, second;
};

// Null for an operator without parameters. Texts and lists in the structure lie in the file's
// memory. Throws std::bad_alloc.
NodeParameters nodeParameters(const tflite::FileOperator& source);

}  // namespace hearth::tflite_c
