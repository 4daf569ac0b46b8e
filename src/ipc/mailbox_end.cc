// SPDX-License-Identifier: Apache-2.0
#include "ipc/mailbox_end.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/processor.h"
#include "ipc/patience.h"

namespace hearth::ipc {
namespace {

using std::chrono::microseconds;

// What sleeping and being woken costs between two processors of a virtual machine. Spinning for
// longer costs more than it can gain, but for an end that keeps its client waiting by it.
constexpr microseconds kLongestSpin(50);
// A wait that slept, and took no longer than it may spin and this, would have ended while spinning:
// the waking is part of it.
constexpr microseconds kWaking(30);
// Spinning for less finds nothing: a word takes a part of it from processor to processor.
constexpr microseconds kShortestSpin(2);
// The part of the time waited that may be spun when the end is announced, and of the time computed
// before a request is waited for.
constexpr int kAnnouncedPart = 10;
constexpr int kComputedPart = 10;
// Between two looks at the clock.
constexpr int kPauses = 32;
// A wait that is woken more often for nothing is not woken by a peer of good will.
constexpr int kMostIdleWakes = 16;
constexpr timespec kNap{0, 1'000'000};

// What close() changes of a number, so that a thread does not go to sleep on it.
constexpr uint32_t kStirred = 0x8000'0000;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("isb");
#endif
}

// As a side of the page has it.
uint32_t numberOfProcessor() {
  return static_cast<uint32_t>(base::currentProcessor() + 1);
}

// The operations are those for memory that processes share.
uint32_t* futexOf(const std::atomic<uint32_t>& word) {
  return reinterpret_cast<uint32_t*>(const_cast<std::atomic<uint32_t>*>(&word));
}

// Wakes the thread that sleeps on the word, of which there is one at most: a peer that adds others
// wakes those.
void wake(const std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, futexOf(word), FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

// Sleeps while the word is `seen`; until `when` at the longest.
void sleepOn(const std::atomic<uint32_t>& word, uint32_t seen,
             std::chrono::steady_clock::time_point when) {
  constexpr int64_t kSecond = 1'000'000'000;
  const int64_t nanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count();
  if (nanoseconds <= 0) return;
  // The steady clock is CLOCK_MONOTONIC, which this operation uses.
  const timespec until{nanoseconds / kSecond, nanoseconds % kSecond};
  ::syscall(SYS_futex, futexOf(word), FUTEX_WAIT_BITSET, seen, &until, nullptr,
            FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

MailboxEnd::MailboxEnd(MailboxSide& own, MailboxSide& peer, PeerCheck isPeerAlive, Naps naps,
                       EndForecast forecast)
    : own_(own),
      peer_(peer),
      isPeerAlive_(std::move(isPeerAlive)),
      naps_(naps),
      patience_(kLongestSpin),
      forecast_(std::move(forecast)) {}

void MailboxEnd::ring(uint32_t sequence, const MailboxWords& words, bool mayWaitAwake) {
  // The peer has read the words before these: it answered, which released its loads, and await()
  // acquired the answer.
  for (size_t i = 0; i < words.size(); ++i)
    own_.words[i].store(words[i], std::memory_order_relaxed);
  own_.processor.store(numberOfProcessor(), std::memory_order_relaxed);
  const auto now = mayWaitAwake ? Clock::now().time_since_epoch() : Clock::duration();
  own_.rungAt.store(static_cast<uint64_t>(std::chrono::nanoseconds(now).count()),
                    std::memory_order_relaxed);
  // Releases the words. Sequentially consistent with the load behind it, as in sleep(): either this
  // thread sees that the other one sleeps, or the other one sees the number.
  own_.sequence.store(sequence);
  if (peer_.isSleeping.load() != 0) wake(own_.sequence);
}

void MailboxEnd::announce(uint32_t sequence) {
  // A hint: nothing is wrong when it comes late or is not seen, so nothing is ordered.
  if (peer_.isSleeping.load(std::memory_order_relaxed) == 0 || !isPeerElsewhere()) return;
  own_.processor.store(numberOfProcessor(), std::memory_order_relaxed);
  own_.announced.store(sequence, std::memory_order_relaxed);
  wake(own_.sequence);
}

Result<MailboxEnd::Arrival> MailboxEnd::await(Awaited awaited, base::Deadline deadline) {
  return wait(awaited, [deadline](Clock::time_point) { return deadline; });
}

Result<MailboxEnd::Arrival> MailboxEnd::await(Awaited awaited, Patience& patience) {
  return wait(awaited, [&patience](Clock::time_point now) { return patience.next(now); });
}

// The clock is read as seldom as possible: that takes 20 ns, and the shortest computation through a
// mailbox 800. A wait that ends while it spins counts as ended at the last look at the clock in it.
template <typename DeadlineAt>
Result<MailboxEnd::Arrival> MailboxEnd::wait(Awaited awaited, DeadlineAt deadlineAt) {
  Arrival arrival{};
  Outcome outcome = look(awaited, arrival.sequence);
  std::optional<Clock::time_point> looked;  // what the clock said last
  if (outcome == Outcome::kNone) {
    const Clock::time_point begin = Clock::now();
    const base::Deadline deadline = deadlineAt(begin);
    const bool maySpin = begin < deadline.when() && isPeerElsewhere();
    Plan plan = maySpin && awaited.isEqual ? forecast_.planFor(begin) : std::nullopt;
    const bool isPlanned = plan.has_value();
    if (isPlanned && plan->wake <= begin) {
      outcome = spinAtEnd(awaited, *plan, deadline, arrival.sequence);
      plan.reset();
    }
    const Clock::duration longest = longestSpin(awaited, begin);
    const bool hasSpun = maySpin && !isPlanned && patience_ >= kShortestSpin;
    looked = begin;
    if (hasSpun) {
      ++spins_;
      outcome = spin(awaited, *looked, begin + std::min(patience_, longest), arrival.sequence);
    }
    const bool hasSlept = outcome == Outcome::kNone;
    if (hasSlept) {
      outcome = sleep(awaited, begin, plan, deadline, arrival.sequence);
      looked = Clock::now();
    }
    if (!isPlanned) learn(hasSpun, hasSlept, *looked - begin, longest);
    if (awaited.isEqual && outcome == Outcome::kArrived) forecast_.add(begin, rungSince(begin));
  }
  switch (outcome) {
    case Outcome::kArrived:
      if (!awaited.isEqual) arrivedAt_ = looked ? *looked : Clock::now();
      break;
    case Outcome::kClosed:
      return fail(ErrorCode::kDeadObject, "The mailbox is closed.");
    case Outcome::kLeft:
      return fail(ErrorCode::kDeadObject, "The other end of the mailbox is gone.");
    case Outcome::kNone:
      return fail(ErrorCode::kMissedDeadlineTransient,
                  "The deadline passes while a mailbox is waited for.");
  }
  for (size_t i = 0; i < arrival.words.size(); ++i)
    arrival.words[i] = peer_.words[i].load(std::memory_order_relaxed);
  // Nobody asks whether an answer was taken. To note it would take the page's line away from the
  // host, which waits there for the next request.
  if (!awaited.isEqual) own_.received.store(arrival.sequence, std::memory_order_relaxed);
  return arrival;
}

void MailboxEnd::close() {
  isClosed_.store(true);
  own_.hasLeft.store(1);
  // Threads at both ends that looked before find another number when they want to sleep.
  own_.sequence.fetch_xor(kStirred);
  peer_.sequence.fetch_xor(kStirred);
  wake(own_.sequence);
  wake(peer_.sequence);
}

MailboxEnd::Outcome MailboxEnd::look(Awaited awaited, uint32_t& sequence) const {
  // Acquires the words that were stored before it.
  sequence = peer_.sequence.load();
  if (isClosed_.load()) return Outcome::kClosed;
  if (peer_.hasLeft.load(std::memory_order_relaxed) != 0) return Outcome::kLeft;
  return awaited.matches(sequence) ? Outcome::kArrived : Outcome::kNone;
}

MailboxEnd::Clock::duration MailboxEnd::longestSpin(Awaited awaited, Clock::time_point now) {
  if (awaited.isEqual || arrivedAt_ == Clock::time_point()) return kLongestSpin;
  const Clock::duration part = (now - arrivedAt_) / kComputedPart;
  if (part <= kLongestSpin || !forecast_.mayTakeProcessor(now)) return kLongestSpin;
  return std::min<Clock::duration>(part, kMostAfterComputation);
}

MailboxEnd::Outcome MailboxEnd::spin(Awaited awaited, Clock::time_point& now, Clock::time_point end,
                                     uint32_t& sequence) {
  Clock::time_point before;
  do {
    for (int i = 0; i < kPauses; ++i) {
      relax();
      const Outcome outcome = look(awaited, sequence);
      if (outcome != Outcome::kNone) return outcome;
    }
    before = std::exchange(now, Clock::now());
  } while (now < end && now - before < EndForecast::kInterrupted);
  // Whoever wants the processor gets it.
  if (now - before >= EndForecast::kInterrupted) forecast_.interrupted(now);
  return Outcome::kNone;
}

MailboxEnd::Outcome MailboxEnd::spinAtEnd(Awaited awaited, const EndForecast::Plan& plan,
                                          base::Deadline deadline, uint32_t& sequence) {
  ++expected_;
  Clock::time_point now = Clock::now();
  const Outcome outcome =
      spin(awaited, now, std::min({plan.until, now + EndForecast::kMostSpun, deadline.when()}),
           sequence);
  forecast_.spun(outcome != Outcome::kNone);
  return outcome;
}

MailboxEnd::Outcome MailboxEnd::sleep(Awaited awaited, Clock::time_point begin, Plan plan,
                                      base::Deadline deadline, uint32_t& sequence) {
  ++sleeps_;
  Outcome outcome = Outcome::kNone;
  bool mayBeAnnounced = true;  // once
  int idleWakes = 0;
  std::chrono::milliseconds interval = naps_.first;
  Clock::time_point nextCheck = Clock::now() + interval;
  own_.isSleeping.store(1);
  for (;;) {
    outcome = look(awaited, sequence);
    if (outcome != Outcome::kNone || deadline.hasPassed()) break;
    if (mayBeAnnounced && isAnnounced(awaited)) {
      mayBeAnnounced = false;
      ++announced_;
      own_.isSleeping.store(0);
      Clock::time_point now = Clock::now();
      const Clock::duration most =
          std::min<Clock::duration>((now - begin) / kAnnouncedPart, kMostAnnounced);
      outcome = spin(awaited, now, std::min(now + most, deadline.when()), sequence);
      if (outcome != Outcome::kNone) break;
      own_.isSleeping.store(1);
      continue;
    }
    const Clock::time_point wake = plan ? std::min(nextCheck, plan->wake) : nextCheck;
    sleepOn(peer_.sequence, sequence, std::min(wake, deadline.when()));
    const Clock::time_point now = Clock::now();
    if (plan && now >= plan->wake) {
      own_.isSleeping.store(0);
      forecast_.woke(now - plan->wake);
      outcome = spinAtEnd(awaited, *plan, deadline, sequence);
      if (outcome != Outcome::kNone) break;
      plan.reset();
      own_.isSleeping.store(1);
      continue;
    }
    if (now < nextCheck) {
      if (++idleWakes > kMostIdleWakes) ::nanosleep(&kNap, nullptr);
      continue;
    }
    interval = std::min(2 * interval, naps_.longest);
    nextCheck = Clock::now() + interval;
    if (!isPeerAlive_ || isPeerAlive_()) continue;
    // It may have answered before it went.
    outcome = look(awaited, sequence);
    if (outcome == Outcome::kNone) outcome = Outcome::kLeft;
    break;
  }
  own_.isSleeping.store(0, std::memory_order_relaxed);
  return outcome;
}

std::optional<MailboxEnd::Clock::time_point> MailboxEnd::rungSince(Clock::time_point begin) const {
  const uint64_t told = peer_.rungAt.load(std::memory_order_relaxed);
  if (told == 0) return {};
  // What the other end tells may be anything.
  const std::chrono::nanoseconds now = Clock::now().time_since_epoch();
  if (told > static_cast<uint64_t>(now.count())) return {};
  const Clock::time_point rung{std::chrono::nanoseconds(static_cast<int64_t>(told))};
  if (rung <= begin) return {};
  return rung;
}

bool MailboxEnd::isAnnounced(Awaited awaited) const {
  return awaited.isEqual && peer_.announced.load(std::memory_order_relaxed) == awaited.number &&
         isPeerElsewhere();
}

bool MailboxEnd::isPeerElsewhere() const {
  // On one processor the other end cannot run while this one spins.
  const uint32_t other = peer_.processor.load(std::memory_order_relaxed);
  return other != 0 && other != numberOfProcessor();
}

void MailboxEnd::learn(bool hasSpun, bool hasSlept, Clock::duration waited,
                       Clock::duration longest) {
  if (waited > longest + kWaking) {
    if (hasSpun) patience_ /= 2;
  } else if (hasSlept) {
    patience_ = longest;
  } else {
    // Twice what it took is enough for most of the next waits.
    patience_ = std::min(std::max<Clock::duration>(2 * waited, patience_ * 7 / 8), longest);
    patience_ = std::max<Clock::duration>(patience_, 2 * kShortestSpin);
  }
}

}  // namespace hearth::ipc
