// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "frontends/tflite/file_tensors.h"
#include "frontends/tflite_c/declarations.h"

namespace hearth::tflite_c {

// What TfLiteTensor::sparsity points to, for TfLiteSparsityFree(). Throws std::bad_alloc.
TfLiteSparsity* makeSparsity(const tflite::schema::SparsityParameters& source);

}  // namespace hearth::tflite_c
