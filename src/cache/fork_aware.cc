// SPDX-License-Identifier: Apache-2.0
#include "cache/fork_aware.h"

#include <pthread.h>

#include <ranges>
#include <vector>

namespace hearth::cache {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<ForkAware*> objects;
};

// Never destroyed: stores may live in static objects.
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

}  // namespace

std::mutex& ForkAware::registryMutex() {
  return registry().mutex;
}

void ForkAware::watchForks() {
  static const int handlers [[maybe_unused]] = ::pthread_atfork(prepare, inParent, inChild);
}

ForkAware::ForkAware(const std::lock_guard<std::mutex>&) {
  watchForks();
  registry().objects.push_back(this);
}

void ForkAware::leaveForkRegistry() {
  const std::lock_guard lock(registryMutex());
  std::erase(registry().objects, this);
}

void ForkAware::prepare() {
  registry().mutex.lock();
  for (ForkAware* object : registry().objects) object->lockForFork();
}

void ForkAware::inParent() {
  for (ForkAware* object : registry().objects | std::views::reverse) object->unlockAfterFork();
  registry().mutex.unlock();
}

void ForkAware::inChild() {
  inParent();
  for (ForkAware* object : registry().objects) object->renewInChild();
}

}  // namespace hearth::cache
