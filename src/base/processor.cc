// SPDX-License-Identifier: Apache-2.0
#include "base/processor.h"

#include <sched.h>

namespace hearth::base {
namespace {

void moveFrom(pthread_t thread, int processor) {
  cpu_set_t all;
  if (::pthread_getaffinity_np(thread, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2) return;
  cpu_set_t others = all;
  CPU_CLR(processor, &others);
  // The first call moves the thread if it is there; the second lets the kernel move it again later.
  if (::pthread_setaffinity_np(thread, sizeof others, &others) == 0)
    ::pthread_setaffinity_np(thread, sizeof all, &all);
}

}  // namespace

int currentProcessor() {
  return ::sched_getcpu();
}

void leaveProcessor(int processor) {
  if (processor < 0 || ::sched_getcpu() != processor) return;
  moveFrom(::pthread_self(), processor);
}

void sendAway(pthread_t thread) {
  const int processor = ::sched_getcpu();
  if (processor >= 0) moveFrom(thread, processor);
}

}  // namespace hearth::base
