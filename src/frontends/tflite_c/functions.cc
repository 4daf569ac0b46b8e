// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/functions.h"

#include "frontends/tflite_c/delegate_device.h"

const hearth::tflite_c::Functions* hearth_tflite_c_functions() {
  static constexpr hearth::tflite_c::Functions functions = {
#define HEARTH_TFLITE_FUNCTION(name) .name = ::name,
#include "frontends/tflite_c/functions.inc"
#undef HEARTH_TFLITE_FUNCTION
      .hasDelegateDevice = hearth::tflite_c::hasDelegateDevice,
  };
  return &functions;
}
