// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "base/log.h"
#include "frontends/nnapi/testing/call_sequence.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hearth::base::setLogLevel(hearth::base::LogLevel::kOff);
  hearth::nnapi::runCallSequence({data, size});
  return 0;
}
