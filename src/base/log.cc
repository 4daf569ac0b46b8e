// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <memory>

#include "base/env.h"
#include "base/file_size_signal.h"
#include "base/fork_gate.h"
#include "base/immortal.h"
#include "base/log_sink.h"

namespace hearth::base {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"trace", "debug", "info",
                                                    "warn",  "error", "off"};

// Outside spdlog's registry, which the host program may use itself.
spdlog::logger& logger() {
  static constinit Immortal<spdlog::logger> instance;
  return instance.get([] {
    spdlog::logger made("hearth", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_level(spdlog::level::trace);
    made.set_pattern("%H:%M:%S.%e %n %P/%t %l: %v");
    made.flush_on(spdlog::level::trace);
    return made;
  });
}

constexpr spdlog::level::level_enum levelOf(LogLevel level) {
  using enum spdlog::level::level_enum;
  constexpr spdlog::level::level_enum kLevels[] = {trace, debug, info, warn, err, off};
  return kLevels[static_cast<size_t>(level)];
}

}  // namespace

int internal::readLogThreshold() {
  const Result<std::string> name = envChoice(Env::kLog);
  const std::string_view chosen =
      name ? std::string_view(*name) : environmentVariable(Env::kLog).standard;
  int threshold = 0;
  while (kNames[static_cast<size_t>(threshold)] != chosen) ++threshold;
  int unread = -1;
  if (logThreshold.compare_exchange_strong(unread, threshold)) {
    if (!name) logWarn("{}", name.error().toString());
    return threshold;
  }
  return unread;
}

void internal::writeLog(LogLevel level, std::string_view message) {
  if (callLogSink(level, message)) return;
  // spdlog's lock on the standard streams is not a base::Mutex.
  const ForkGate::Inside inside;
  // Standard error may be a file.
  const FileSizeSignalOff signalOff;
  // Not passed as a format text, since spdlog would interpret braces.
  logger().log(levelOf(level), spdlog::string_view_t(message.data(), message.size()));
}

void setLogLevelFromEnvironment() {
  internal::logThreshold.store(-1, std::memory_order_relaxed);
}

void setLogLevel(LogLevel level) {
  internal::logThreshold.store(static_cast<int>(level), std::memory_order_relaxed);
}

}  // namespace hearth::base
