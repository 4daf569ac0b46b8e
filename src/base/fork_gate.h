// SPDX-License-Identifier: Apache-2.0
// Makes forks safe for a process whose threads use this library. A child has only the forking
// thread: a lock that another thread held would stay locked there for ever, and the data under it
// half changed. So a fork waits until no other thread is in a critical section, and keeps all
// threads out until it is over. base::Mutex uses this gate by itself.
#pragma once

#include <cstdint>

namespace hearth::base {

// Thread-safe. Entering and leaving cost two atomic operations on a cache line that few threads
// share.
//
// A thread inside must not wait for a thread that may have to come in: the fork waits for the
// first, and the second waits at the gate for the fork. Joining threads and waiting for room in a
// queue are such waits. Nor may a thread inside call the program's own functions, which may take a
// lock that the forking thread holds.
class ForkGate {
 public:
  // The calling thread is inside while this exists. To be used on one thread; may be nested.
  class Inside {
   public:
    Inside() { enter(); }
    ~Inside() { leave(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
  };

  // The same for work that a thread inside waits for: it passes a closed gate.
  class OnBehalf {
   public:
    explicit OnBehalf(bool isInside);
    ~OnBehalf();
    OnBehalf(const OnBehalf&) = delete;
    OnBehalf& operator=(const OnBehalf&) = delete;

   private:
    const bool isInside_;
  };

  static bool isInside();

  static void enter();
  static void leave();

  // The number of forks between the process that loaded this library and this one. State that
  // belongs to threads of an earlier generation has no owner any more.
  static uint32_t generation();

  // Registers functions to be called around each fork: `before` in the parent, while the gate is
  // still open, the last registered first; `afterInParent` and `afterInChild` when it is open
  // again, in the order of registration. Null: none. At most 32 registrations; they last as long as
  // the process.
  struct Handlers {
    void (*before)() = nullptr;
    void (*afterInParent)() = nullptr;
    void (*afterInChild)() = nullptr;
  };
  static void atFork(const Handlers& handlers);
};

}  // namespace hearth::base
