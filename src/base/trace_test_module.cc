// SPDX-License-Identifier: Apache-2.0
// A library with its own copy of the tracing code, as a driver's library has.
#include "base/trace.h"

extern "C" __attribute__((visibility("default"))) void traceFromModule(const char* name) {
  const hearth::base::TraceSpan span("test", name);
}
