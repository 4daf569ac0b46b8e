// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "base/log.h"

namespace hearth::base {

// Takes log lines in place of standard error. Called by one thread at a time, any that logs. The
// text ends with a zero byte and is valid only during the call.
using LogSink = std::function<void(LogLevel level, const char* message)>;

// Replaces the sink; with an empty one, lines go to standard error. When it returns, the old sink
// is not running and is not called again, unless the old sink itself made this call. Thread-safe.
// When it throws std::bad_alloc, nothing has changed.
void setLogSink(LogSink sink);

// Passes the line to the sink. False when there is none, and inside a call of it.
bool callLogSink(LogLevel level, std::string_view message);

}  // namespace hearth::base
