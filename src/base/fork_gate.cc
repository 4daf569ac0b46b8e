// SPDX-License-Identifier: Apache-2.0
#include "base/fork_gate.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

#include "base/thread_local.h"

#ifdef __GLIBC__
// Not in glibc's headers; the Linux Standard Base documents it. `library` is the one whose end
// removes the handlers.
extern "C" int registerAtFork(void (*prepare)(), void (*parent)(), void (*child)(),
                              void* library) __asm__("__register_atfork");
#endif

namespace hearth::base {
namespace {

// Each thread counts itself in one of these, so that few threads share a cache line.
struct alignas(64) Shard {
  std::atomic<uint32_t> inside = 0;
};

constexpr size_t kShards = 64;
constexpr size_t kMostHandlers = 32;

constinit std::array<Shard, kShards> shards;
constinit std::atomic<uint32_t> nextShard = 0;
constinit std::atomic<uint32_t> isClosed = 0;
constinit std::atomic<uint32_t> forks = 0;
constinit std::mutex forking;  // held by the thread that forks
constinit std::mutex adding;
constinit std::array<ForkGate::Handlers, kMostHandlers> handlers;
constinit std::atomic<size_t> handlerCount = 0;

// Of the calling thread. Has no destructor, since the library may be used until the process is
// gone.
struct Place {
  uint32_t depth = 0;
  uint32_t shard = UINT32_MAX;
  bool isCounted = false;  // counted for itself, not on behalf of another thread
};
HEARTH_THREAD_LOCAL constinit Place place;

std::atomic<uint32_t>& myShard() {
  if (place.shard == UINT32_MAX) place.shard = nextShard.fetch_add(1) % kShards;
  return shards[place.shard].inside;
}

// Either the thread that closes the gate sees the new count, or this thread sees the closed gate.
void goOut(std::atomic<uint32_t>& inside) {
  inside.fetch_sub(1);
  if (isClosed.load() != 0) inside.notify_all();
}

void closeGate() {
  for (size_t i = handlerCount.load(); i-- > 0;)
    if (handlers[i].before != nullptr) handlers[i].before();
  forking.lock();
  isClosed.store(1);
  for (size_t i = 0; i < kShards; ++i) {
    const uint32_t own = place.isCounted && place.shard == i ? 1 : 0;
    std::atomic<uint32_t>& inside = shards[i].inside;
    for (uint32_t seen = inside.load(); seen > own; seen = inside.load()) inside.wait(seen);
  }
}

void openGate() {
  isClosed.store(0);
  forking.unlock();
}

void afterInParent() {
  openGate();
  isClosed.notify_all();
  for (size_t i = 0; i < handlerCount.load(); ++i)
    if (handlers[i].afterInParent != nullptr) handlers[i].afterInParent();
}

void afterInChild() {
  forks.fetch_add(1);
  // Resets the counts: other threads of the parent may have counted themselves to look at the gate.
  for (size_t i = 0; i < kShards; ++i)
    shards[i].inside.store(place.isCounted && place.shard == i ? 1 : 0);
  openGate();
  for (size_t i = 0; i < handlerCount.load(); ++i)
    if (handlers[i].afterInChild != nullptr) handlers[i].afterInChild();
}

// The handlers stay until the process is gone, as the code does (-z nodelete). pthread_atfork()'s
// go when exit() finalises the library; glibc aborts when that happens while another thread forks
// and waits in closeGate().
int registerHandlers() {
#ifdef __GLIBC__
  return registerAtFork(closeGate, afterInParent, afterInChild, nullptr);
#else
  return ::pthread_atfork(closeGate, afterInParent, afterInChild);
#endif
}

// Registered while the library is loaded, so that no thread can be inside earlier.
[[maybe_unused]] const int registered = registerHandlers();

}  // namespace

void ForkGate::enter() {
  if (place.depth++ != 0) return;
  std::atomic<uint32_t>& inside = myShard();
  for (;;) {
    // Counts itself and then looks at the gate, while closeGate() closes the gate and then looks at
    // the counts. All four are sequentially consistent, or both might miss the other.
    inside.fetch_add(1);
    if (isClosed.load() == 0) break;
    goOut(inside);
    isClosed.wait(1);
  }
  place.isCounted = true;
}

void ForkGate::leave() {
  if (--place.depth != 0) return;
  place.isCounted = false;
  goOut(myShard());
}

ForkGate::OnBehalf::OnBehalf(bool isInside) : isInside_(isInside) {
  if (isInside_) ++place.depth;
}

ForkGate::OnBehalf::~OnBehalf() {
  if (isInside_) --place.depth;
}

bool ForkGate::isInside() {
  return place.depth != 0;
}

uint32_t ForkGate::generation() {
  // Changes only in a new process, before it has a second thread.
  return forks.load(std::memory_order_relaxed);
}

void ForkGate::atFork(const Handlers& added) {
  const std::lock_guard lock(adding);
  const size_t count = handlerCount.load();
  if (count == kMostHandlers) return;
  handlers[count] = added;
  handlerCount.store(count + 1);
}

}  // namespace hearth::base
