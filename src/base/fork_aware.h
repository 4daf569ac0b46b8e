// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include "base/mutex.h"

namespace hearth::base {

// An object whose threads do not exist in a forked child, and that goes on working there with new
// ones. Its tables are whole in the child, since Mutex guards them.
class ForkAware {
 public:
  // Held while such objects are made or looked up; taken before any lock of theirs.
  static Mutex& registryMutex();

 protected:
  ForkAware() = default;
  ForkAware(const ForkAware&) = delete;
  ForkAware& operator=(const ForkAware&) = delete;
  virtual ~ForkAware() = default;
  // Last thing when the object is made, when nothing of it can fail any more. `held` locks
  // registryMutex().
  void joinForkRegistry(const std::lock_guard<Mutex>& held);
  // First thing in the destructor of the class that implements what follows, also of an object that
  // has not joined; not under the registry's lock.
  void leaveForkRegistry();

  // Called in the child, in the order in which the objects were made.
  virtual void renewInChild() = 0;
};

}  // namespace hearth::base
