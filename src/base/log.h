// SPDX-License-Identifier: Apache-2.0
// Messages for people, from the level of HEARTH_LOG up, to a LogSink or else to standard error.
#pragma once

#include <atomic>
#include <string_view>

#include "base/format.h"

namespace hearth::base {

// In order of severity. kOff is only a threshold; no message has it.
enum class LogLevel : int { kTrace, kDebug, kInfo, kWarn, kError, kOff };

namespace internal {
// Negative until the first call has read HEARTH_LOG.
inline std::atomic<int> logThreshold = -1;
int readLogThreshold();
void writeLog(LogLevel level, std::string_view message);
}  // namespace internal

inline bool logEnabled(LogLevel level) {
  int threshold = internal::logThreshold.load(std::memory_order_relaxed);
  if (threshold < 0) [[unlikely]]
    threshold = internal::readLogThreshold();
  return static_cast<int>(level) >= threshold;
}

// Overrides HEARTH_LOG from now on. Thread-safe.
void setLogLevel(LogLevel level);
// Makes HEARTH_LOG count again. Thread-safe.
void setLogLevelFromEnvironment();

// Writes one line of a std::format text; below the threshold does nothing and formats nothing. A
// message is a sentence. Thread-safe; lines of several threads do not mix.
template <typename... Args>
void log(LogLevel level, std::format_string<Args...> format, Args&&... args) {
  if (logEnabled(level))
    internal::writeLog(level, base::formatText(format, std::forward<Args>(args)...));
}
template <typename... Args>
void logTrace(std::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kTrace, format, std::forward<Args>(args)...);
}
template <typename... Args>
void logDebug(std::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kDebug, format, std::forward<Args>(args)...);
}
template <typename... Args>
void logInfo(std::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kInfo, format, std::forward<Args>(args)...);
}
template <typename... Args>
void logWarn(std::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kWarn, format, std::forward<Args>(args)...);
}
template <typename... Args>
void logError(std::format_string<Args...> format, Args&&... args) {
  log(LogLevel::kError, format, std::forward<Args>(args)...);
}

}  // namespace hearth::base
