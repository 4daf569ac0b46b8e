// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/log.h"
#include "frontends/tflite_c/testing/call_sequence.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool kIsQuiet = [] {
    hearth::base::setLogLevel(hearth::base::LogLevel::kOff);
    return ::setenv("HEARTH_STORE_MODE", "off", 1) == 0;
  }();
  if (kIsQuiet) hearth::tflite_c::testing::runCallSequence({data, size});
  return 0;
}
