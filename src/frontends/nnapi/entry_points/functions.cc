// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/entry_points/functions.h"

const hearth::nnapi::Functions* hearth_nnapi_functions() {
  static const hearth::nnapi::Functions functions = {
#define HEARTH_NNAPI_FUNCTION(name) .name = ::name,
#include "frontends/nnapi/entry_points/functions.inc"
#undef HEARTH_NNAPI_FUNCTION
  };
  return &functions;
}
