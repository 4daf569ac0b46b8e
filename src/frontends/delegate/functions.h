// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "tflite_abi/structures.h"

namespace hearth::delegate {

// The functions that libhearth_delegate.so exports, by TensorFlow Lite's interface of external
// delegates.
struct Functions {
  // Null on failure, of which `reportError`, if not null, gets a sentence.
  TfLiteDelegate* (*create)(const char* const* keys, const char* const* values, size_t count,
                            void (*reportError)(const char*));
  void (*destroy)(TfLiteDelegate* delegate);  // takes null
};

}  // namespace hearth::delegate

// Only for libhearth_delegate.so of the same build.
extern "C" __attribute__((visibility("default"))) const hearth::delegate::Functions*
hearth_delegate_functions();
