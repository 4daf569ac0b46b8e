// SPDX-License-Identifier: Apache-2.0
#include "base/crash_point.h"

#ifdef HEARTH_TEST_HOOKS
#include <signal.h>
#include <unistd.h>

#include <mutex>
#include <set>

#include "base/env.h"
#include "base/immortal.h"
#include "base/log.h"
#include "base/mutex.h"
#endif

namespace hearth::base {

#ifdef HEARTH_TEST_HOOKS
namespace {

struct Registry {
  Mutex mutex;
  std::set<std::string> names;
  std::string armed;  // the point that kills, empty = none
  int64_t passesLeft = 0;
};

Registry& registry() {
  static constinit Immortal<Registry> instance;
  return instance.get();
}

// Called under the registry's lock.
void arm(Registry& known) {
  const std::string text = envString(Env::kCrashAt);
  const size_t colon = text.rfind(':');
  known.armed = text.substr(0, colon);
  known.passesLeft = 1;
  if (colon != std::string::npos) {
    const Result<int64_t> passes = parseInteger(
        "The count in HEARTH_CRASH_AT", std::string_view(text).substr(colon + 1), 1, INT64_MAX);
    if (passes)
      known.passesLeft = *passes;
    else
      logWarn("{}", passes.error().toString());
  }
  internal::crashArmed = known.armed.empty() ? 0 : 1;
}

constinit std::atomic<void (*)(std::string_view)> watcher = nullptr;

}  // namespace

bool internal::registerCrashPoint(const char* name) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  known.names.insert(name);
  return true;
}

void internal::passCrashPoint(std::string_view name) {
  if (const auto passed = watcher.load()) return passed(name);
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  if (crashArmed < 0) arm(known);
  if (known.armed != name || --known.passesLeft != 0) return;
  ::kill(::getpid(), SIGKILL);
  // Another thread may take the signal first; this thread must do nothing until the process ends.
  for (;;) ::pause();
}

void watchCrashPoints(void (*passed)(std::string_view name)) {
  watcher = passed;
  internal::crashArmed = passed == nullptr ? -1 : 1;
}

std::vector<std::string> crashPoints() {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  return {known.names.begin(), known.names.end()};
}
#else
std::vector<std::string> crashPoints() {
  return {};
}
#endif

}  // namespace hearth::base
