// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

namespace hearth::cache {

// An object that goes on working in a forked child, where only the forking thread exists. Around a
// fork all such objects are locked, in the order in which they were made, so that the child finds
// every table whole.
class ForkAware {
 public:
  // Registers the handlers that do this. What pthread_atfork() is given after it prepares before
  // anything is locked: for threads that have to end, and may need these locks for it.
  static void watchForks();

  // Held while such objects are made or looked up, and during a fork; taken before any lock of
  // theirs. Never destroyed.
  static std::mutex& registryMutex();

 protected:
  // `held` locks registryMutex().
  explicit ForkAware(const std::lock_guard<std::mutex>& held);
  ForkAware(const ForkAware&) = delete;
  ForkAware& operator=(const ForkAware&) = delete;
  virtual ~ForkAware() = default;
  // First thing in the destructor of the class that implements what follows; not under the
  // registry's lock.
  void leaveForkRegistry();

  virtual void lockForFork() = 0;
  virtual void unlockAfterFork() = 0;  // in the parent and in the child
  virtual void renewInChild() = 0;     // after that

 private:
  static void prepare();
  static void inParent();
  static void inChild();
};

}  // namespace hearth::cache
