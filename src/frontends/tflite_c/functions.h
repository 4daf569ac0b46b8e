// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "frontends/tflite_c/declarations.h"

namespace hearth::tflite_c {

// One pointer for each function of declarations.h, under its own name.
struct Functions {
#define HEARTH_TFLITE_FUNCTION(name) decltype(&::name) name;
#include "frontends/tflite_c/functions.inc"
#undef HEARTH_TFLITE_FUNCTION
  // hasDelegateDevice(), which the interface does not have.
  bool (*hasDelegateDevice)(const char* library);
};

}  // namespace hearth::tflite_c

// The functions' addresses in libhearth.so. Only for libtensorflowlite_c.so and the Python package
// of the same build.
extern "C" __attribute__((visibility("default"))) const hearth::tflite_c::Functions*
hearth_tflite_c_functions();
