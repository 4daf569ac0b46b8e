// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/testing/library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace hearth::tflite_c::testing {
namespace {

const bool kIsStoreOff = ::setenv("HEARTH_STORE_MODE", "off", 1) == 0;

}  // namespace

void* library() {
  static void* const handle = ::dlopen(HEARTH_TFLITE_C_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  return handle;
}

}  // namespace hearth::tflite_c::testing
