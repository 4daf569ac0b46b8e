// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as options of the delegate and as the graph of a runtime, which it takes and
// runs.
#include <cstddef>
#include <cstdint>

#include "base/log.h"
#include "frontends/delegate/testing/graph_of_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hearth::base::setLogLevel(hearth::base::LogLevel::kOff);
  hearth::delegate::runGraphOfBytes({data, size});
  return 0;
}
