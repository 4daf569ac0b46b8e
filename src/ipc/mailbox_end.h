// SPDX-License-Identifier: Apache-2.0
// What both ends of a mailbox do: ring the other one, and wait for it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/deadline.h"
#include "base/result.h"
#include "ipc/end_forecast.h"
#include "ipc/mailbox_page.h"

namespace hearth::ipc {

class Patience;

// Whether the process at the other end may still answer; asked now and then while a wait is long,
// on the waiting thread. Empty: it may until close().
using PeerCheck = std::function<bool()>;

// One end of a mailbox. To be used by one thread at a time, but for close().
//
// A wait spins while that pays and then sleeps on a futex. It pays when the other end runs on
// another processor and mostly answers within the time that sleeping and waking take. Which
// processor that is says the other end, and how long it takes shows: an end that lies makes the
// other one spin for a few microseconds of each of its own requests, or a tenth of its computation.
// A thread that waits looks around from time to time, since a peer can steal a wake-up: it may
// write to the word that is waited for, or move the waiting thread to another futex.
//
// An end that has answered after a long computation may spin for the next request for a tenth of
// that time: a client that slept takes long to wake and to ask again, and would have to wake this
// end, too.
//
// Where the other end says when it answered, a thread that waits for a certain answer learns how
// long that takes, and is awake when the next one comes (EndForecast).
//
// An end that knows that it will answer soon announces it. The other one then wakes before the
// answer, and spins for a tenth at most of the time that it has waited: neither waits for a waking.
class MailboxEnd {
 public:
  // How long a waiting thread sleeps before it looks around for the first time, and in the end
  // between two looks.
  struct Naps {
    std::chrono::milliseconds first;
    std::chrono::milliseconds longest;
  };

  // How long a wait spins at most since its end was announced.
  static constexpr std::chrono::microseconds kMostAnnounced{150};

  // How long a wait for a request spins at most after a long computation.
  static constexpr std::chrono::microseconds kMostAfterComputation{150};

  // The sequence numbers that end a wait: a certain one, or any but a certain one.
  struct Awaited {
    uint32_t number;
    bool isEqual;

    bool matches(uint32_t sequence) const { return (sequence == number) == isEqual; }
  };
  struct Arrival {
    uint32_t sequence;
    MailboxWords words;
  };

  // `own` and `peer` are the sides of a page that outlives this object.
  MailboxEnd(MailboxSide& own, MailboxSide& peer, PeerCheck isPeerAlive, Naps naps,
             EndForecast forecast = EndForecast());
  MailboxEnd(const MailboxEnd&) = delete;
  MailboxEnd& operator=(const MailboxEnd&) = delete;

  // Publishes words under a number and wakes the other end if it sleeps. With `mayWaitAwake`, which
  // says that a processor is left for it, the other end may spin at the end of its next wait.
  void ring(uint32_t sequence, const MailboxWords& words, bool mayWaitAwake = false);

  // Tells the other end, if it sleeps on another processor, that what it waits for comes under this
  // number within kMostAnnounced.
  void announce(uint32_t sequence);

  // Waits until the other end has published what is awaited. Errors: kDeadObject after close(),
  // when the other end has left, or when its check says so; kMissedDeadlineTransient.
  Result<Arrival> await(Awaited awaited, base::Deadline deadline);
  // The same until `patience` is to be asked next.
  Result<Arrival> await(Awaited awaited, Patience& patience);

  // Whether the other end ran on another processor than this thread's when it rang last. False
  // where that is not known.
  bool isPeerElsewhere() const;

  // Ends all waits, now and later, at both ends. Thread-safe.
  void close();

  // How many waits spun at their beginning, how many slept, how many of these spun since their end
  // was announced, and how many waits spun since they were expected to end.
  uint64_t spins() const { return spins_; }
  uint64_t sleeps() const { return sleeps_; }
  uint64_t announced() const { return announced_; }
  uint64_t expected() const { return expected_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Plan = std::optional<EndForecast::Plan>;
  enum class Outcome { kNone, kArrived, kClosed, kLeft };

  // Waits until the time that `deadlineAt` gives when it is told what time it is.
  template <typename DeadlineAt>
  Result<Arrival> wait(Awaited awaited, DeadlineAt deadlineAt);
  // What can be told without waiting; sets `sequence` to the other end's.
  Outcome look(Awaited awaited, uint32_t& sequence) const;
  // How long a wait that begins `now` may spin at its beginning.
  Clock::duration longestSpin(Awaited awaited, Clock::time_point now);
  // `now` is the time, in the end that of the last look at the clock.
  Outcome spin(Awaited awaited, Clock::time_point& now, Clock::time_point end, uint32_t& sequence);
  // Spins as planned.
  Outcome spinAtEnd(Awaited awaited, const EndForecast::Plan& plan, base::Deadline deadline,
                    uint32_t& sequence);
  // kNone: the deadline has passed.
  Outcome sleep(Awaited awaited, Clock::time_point begin, Plan plan, base::Deadline deadline,
                uint32_t& sequence);
  // When the other end rang, if it tells and it was after `begin`.
  std::optional<Clock::time_point> rungSince(Clock::time_point begin) const;
  bool isAnnounced(Awaited awaited) const;
  // A wait is over that could have spun for `longest`.
  void learn(bool hasSpun, bool hasSlept, Clock::duration waited, Clock::duration longest);

  MailboxSide& own_;
  MailboxSide& peer_;
  const PeerCheck isPeerAlive_;
  const Naps naps_;
  std::atomic<bool> isClosed_ = false;
  Clock::duration patience_;  // how long the next wait spins, unless it may not for so long
  // The end of the last wait for any number but a certain one, or the last look at the clock in it.
  Clock::time_point arrivedAt_{};
  EndForecast forecast_;  // of waits for a certain number
  uint64_t spins_ = 0;
  uint64_t sleeps_ = 0;
  uint64_t announced_ = 0;
  uint64_t expected_ = 0;
};

}  // namespace hearth::ipc
