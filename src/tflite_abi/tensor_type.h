// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tflite_abi/structures.h"

namespace hearth::tflite_abi {

// The type for the number that a model file has for it; kTfLiteNoType if there is none.
TfLiteType typeOfFile(int32_t type);

// Bits of an element; 0 for types whose elements have no fixed size.
uint32_t elementBits(TfLiteType type);

// "FLOAT32", as in messages of the interface.
const char* typeName(TfLiteType type);

}  // namespace hearth::tflite_abi
