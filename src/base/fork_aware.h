// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "base/mutex.h"

namespace hearth::base {

// An object that goes on working in a forked child, with new threads in place of those that do not
// exist there. Its tables are whole in the child, since Mutex guards them.
class ForkAware {
 public:
  // Held while such objects are made or looked up. Taken before any lock of theirs.
  static Mutex& registryMutex();

 protected:
  ForkAware() = default;
  ForkAware(const ForkAware&) = delete;
  ForkAware& operator=(const ForkAware&) = delete;
  virtual ~ForkAware() = default;
  // To be called last when the object is made, once nothing can fail any more. `held` locks
  // registryMutex().
  void joinForkRegistry(const std::lock_guard<Mutex>& held);
  // To be called first in the destructor of the class that implements renewInChild(), even if the
  // object has not joined; not with the registry's lock held.
  void leaveForkRegistry();

  // Called in the child, in the order in which the objects were made.
  virtual void renewInChild() = 0;
};

}  // namespace hearth::base
