// SPDX-License-Identifier: Apache-2.0
// What a fork does to a process whose threads use this library. The child has the forking thread
// only: a lock that another thread holds stays locked there for ever, and what it protects half
// changed. So a fork waits until nobody else is in a critical section, and keeps everybody out
// until it is over. base::Mutex goes through this gate by itself.
#pragma once

#include <cstdint>

namespace hearth::base {

// All is thread-safe, and costs two atomic operations on a line of memory that few threads share.
//
// Who is inside must not wait for a thread that may have to come in: that one stands before the
// gate while the fork waits for the first. Joining threads and waiting for room in a queue are such
// waits. Nor may it call the program's own functions, which may take locks that the thread holds
// that forks.
class ForkGate {
 public:
  // The calling thread is inside as long as this lives, on one thread; may be nested.
  class Inside {
   public:
    Inside() { enter(); }
    ~Inside() { leave(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
  };

  // The same for work that a thread inside waits for: it does not stop at a closed gate.
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

  // Forks between the process that loaded this library and this one. What belongs to threads of an
  // earlier generation belongs to nobody.
  static uint32_t generation();

  // What is called around each fork from now on: `before` in the parent, when the gate is still
  // open, the last registered first; `afterInParent` and `afterInChild` when it is open again, in
  // the order of registration. Null: nothing. At most some tens, for the life of the process.
  struct Handlers {
    void (*before)() = nullptr;
    void (*afterInParent)() = nullptr;
    void (*afterInChild)() = nullptr;
  };
  static void atFork(const Handlers& handlers);
};

}  // namespace hearth::base
