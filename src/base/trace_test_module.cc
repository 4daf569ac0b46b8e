// SPDX-License-Identifier: Apache-2.0
// A library with its own copy of the tracing code, like a driver's library.
#include "base/trace.h"

extern "C" __attribute__((visibility("default"))) void traceFromModule(const char* name) {
  const hearth::base::TraceSpan span("test", name);
}
