// SPDX-License-Identifier: Apache-2.0
// The functions of hearth.h about the library and the process as a whole.
#include <hearth_build_info.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "api/handles.h"
#include "base/exit_work.h"
#include "base/helper_thread.h"
#include "base/log_sink.h"
#include "runtime/device_manager.h"

using hearth::ErrorCode;
using hearth::fail;
using hearth::Status;
using hearth::api::guarded;

namespace {

void flushDevices() {
  for (const auto& device : hearth::runtime::DeviceManager::shared().devices()) device->flush();
}

struct Flush {
  std::mutex mutex;
  std::condition_variable changed;
  bool isDone = false;
};

// Flushes on a thread of its own, which goes on after the time-out.
Status flushUntil(const hearth::base::Deadline& deadline, uint64_t timeoutNs) {
  const auto flush = std::make_shared<Flush>();
  std::thread thread = hearth::base::startHelperThread("hearth-flush", [flush] {
    flushDevices();
    const std::lock_guard lock(flush->mutex);
    flush->isDone = true;
    flush->changed.notify_all();
  });
  if (!thread.joinable())
    return fail(ErrorCode::kResourceExhaustedTransient, "No thread can be had.");
  thread.detach();
  std::unique_lock lock(flush->mutex);
  if (flush->changed.wait_until(lock, deadline.when(), [&] { return flush->isDone; })) return {};
  return fail(ErrorCode::kMissedDeadlineTransient, "What was packed is not written within {} ns.",
              timeoutNs);
}

}  // namespace

extern "C" {

const char* hearth_version(void) {
  return HEARTH_VERSION;
}

uint32_t hearth_version_number(void) {
  return HEARTH_VERSION_NUMBER;
}

hearth_status hearth_set_log_callback(int32_t level, hearth_log_callback callback, void* user,
                                      hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (level < HEARTH_LOG_DEFAULT || level > HEARTH_LOG_OFF)
      return fail(ErrorCode::kBadData, "There is no log level {}.", level);
    hearth::base::LogSink sink;
    if (callback != nullptr)
      sink = [callback, user](hearth::base::LogLevel of, const char* message) {
        callback(static_cast<hearth_log_level>(of), message, user);
      };
    hearth::base::setLogSink(std::move(sink));
    if (level == HEARTH_LOG_DEFAULT)
      hearth::base::setLogLevelFromEnvironment();
    else
      hearth::base::setLogLevel(static_cast<hearth::base::LogLevel>(level));
    return {};
  });
}

hearth_status hearth_flush(uint64_t timeout_ns, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (timeout_ns != 0) return flushUntil(hearth::api::deadlineAfter(timeout_ns), timeout_ns);
    flushDevices();
    return {};
  });
}

void hearth_set_work_at_exit(int works) {
  hearth::base::setWorkAtExit(works != 0);
}

}  // extern "C"
