// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "base/log.h"
#include "ipc/testing/client_messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hearth::base::setLogLevel(hearth::base::LogLevel::kOff);
  hearth::ipc::playClient({data, size});
  return 0;
}
