// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "base/log.h"

namespace hearth::base {

// Takes log lines in place of standard error. Called by one thread at a time, whichever logs, with
// a text that ends with a zero byte and is gone after the call.
using LogSink = std::function<void(LogLevel level, const char* message)>;

// Replaces the sink; with an empty one lines go to standard error. When it returns, the sink before
// is not running and is not called again, except for the very call that replaces it. Thread-safe.
// Throws std::bad_alloc, and then changes nothing.
void setLogSink(LogSink sink);

// Hands the line to the sink. False where there is none, and inside a call of it.
bool callLogSink(LogLevel level, std::string_view message);

}  // namespace hearth::base
