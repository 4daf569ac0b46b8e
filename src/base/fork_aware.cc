// SPDX-License-Identifier: Apache-2.0
#include "base/fork_aware.h"

#include <vector>

#include "base/fork_gate.h"
#include "base/immortal.h"

namespace hearth::base {
namespace {

constinit Mutex mutex;
constinit Immortal<std::vector<ForkAware*>> objects;

}  // namespace

Mutex& ForkAware::registryMutex() {
  return mutex;
}

void ForkAware::joinForkRegistry(const std::lock_guard<Mutex>&) {
  std::vector<ForkAware*>& all = objects.get([] {
    ForkGate::atFork({.afterInChild = [] {
      for (ForkAware* object : objects.get()) object->renewInChild();
    }});
    return std::vector<ForkAware*>();
  });
  all.push_back(this);
}

void ForkAware::leaveForkRegistry() {
  const std::lock_guard lock(mutex);
  std::erase(objects.get(), this);
}

}  // namespace hearth::base
