// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string_view>

#include "hal/driver_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)hearth::hal::parseDriverManifest({reinterpret_cast<const char*>(data), size});
  return 0;
}
