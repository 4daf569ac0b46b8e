// SPDX-License-Identifier: Apache-2.0
#include "cache/fork_aware.h"

#include <vector>

#include "base/fork_gate.h"
#include "base/immortal.h"

namespace hearth::cache {
namespace {

constinit base::Mutex mutex;
constinit base::Immortal<std::vector<ForkAware*>> objects;

}  // namespace

base::Mutex& ForkAware::registryMutex() {
  return mutex;
}

ForkAware::ForkAware(const std::lock_guard<base::Mutex>&) {
  std::vector<ForkAware*>& all = objects.get([] {
    base::ForkGate::atFork({.afterInChild = [] {
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

}  // namespace hearth::cache
