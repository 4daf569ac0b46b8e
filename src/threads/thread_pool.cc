// SPDX-License-Identifier: Apache-2.0
// How threads share a call. The caller splits the items into one range per participant, publishes
// the job and begins to work. A worker that is awake in time takes a ticket and joins. A thread
// that has emptied its own range takes half of another's. When nothing is left, the caller closes
// the job and waits only for workers that hold a ticket, never for one that has yet to wake. A call
// is right whatever the workers do.
//
// state_ holds, from the top: the job's epoch (32 bits), whether tickets are still given (1),
// tickets given (15), tickets returned (16).
//
// Memory order. The caller's store to state_ releases the job, the limit of tickets and the ranges,
// and the exchange by which a worker takes its ticket acquires them; it fails when the job is over,
// so a worker never pairs one job's state with what another one wrote. Ranges are numbers and
// nothing else, so taking a part of one needs no order. Returning a ticket releases what the worker
// wrote; all changes of state_ are read-modify-write operations until the next job, so the caller,
// which sees the last one, acquires the writes of every worker. Where one thread writes A and reads
// B and another writes B and reads A, to sleep or to wake, all four are sequentially consistent: a
// store-release and a load-acquire of two words may change places. A futex reads its word behind a
// barrier of the kernel.
#include "threads/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <pthreadpool.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <exception>

#include "base/caught.h"
#include "base/fork_gate.h"
#include "base/helper_thread.h"
#include "base/processor.h"
#include "base/signals.h"
#include "base/thread_local.h"
#include "threads/denormals.h"

namespace hearth::threads {
namespace {

constexpr uint64_t kOpen = uint64_t{1} << 31;
constexpr uint64_t kTicket = uint64_t{1} << 16;
constexpr uint64_t kTicketMask = 0x7fff;
constexpr uint64_t kReturned = 1;
constexpr uint64_t kReturnedMask = 0xffff;
// Generations that no process has: of a pool that has not been started, and of one that is being
// started.
constexpr uint32_t kAsleep = UINT32_MAX - 1;
constexpr uint32_t kRebuilding = UINT32_MAX;
constexpr uint64_t kMaxItems = uint64_t{1} << 31;

// The gap between two operators of an inference is a few microseconds, so this covers most gaps.
// Sleeping and waking takes about as long.
constexpr std::chrono::microseconds kWorkerSpin{60};
constexpr std::chrono::microseconds kCallerSpin{60};
// A worker that had to be woken for the next run this soon after its last task would have done
// better to spin. It is more than kWorkerSpin by what waking takes.
constexpr std::chrono::microseconds kSoon{120};

HEARTH_THREAD_LOCAL bool insideTask = false;

uint32_t epochOf(uint64_t state) {
  return static_cast<uint32_t>(state >> 32);
}
uint64_t ticketsOf(uint64_t state) {
  return state / kTicket & kTicketMask;
}
bool allReturned(uint64_t state) {
  return ticketsOf(state) == (state & kReturnedMask);
}

uint64_t packRange(uint64_t begin, uint64_t end) {
  return end << 32 | begin;
}
uint64_t beginOf(uint64_t range) {
  return range & UINT32_MAX;
}
uint64_t endOf(uint64_t range) {
  return range >> 32;
}

void futexWait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr,
          nullptr, 0);
}

void futexWake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr,
          nullptr, 0);
}

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__("yield");
#endif
}

// Spins until done() or until `limit` has passed; true when done.
template <typename Done>
bool spinUntil(std::chrono::microseconds limit, Done&& done) {
  using Clock = std::chrono::steady_clock;
  if (done()) return true;
  const Clock::time_point end = Clock::now() + limit;
  do {
    for (int i = 0; i < 32; ++i) {
      relax();
      if (done()) return true;
    }
  } while (Clock::now() < end);
  return false;
}

// The state that the threads of a call share. run() catches exceptions, because other threads wait
// for this one: the caller rethrows the first, and items that have not begun by then are skipped.
// (XNNPACK's tasks do not throw, so no exception crosses its frames.)
struct SharedTask {
  const ThreadPool::RangeFunction function;
  void* const context;
  std::atomic<bool> hasFailed = false;
  std::exception_ptr failure;  // read when all threads have finished

  static void run(void* opaque, size_t thread, size_t begin, size_t end) noexcept {
    SharedTask& task = *static_cast<SharedTask*>(opaque);
    if (task.hasFailed.load(std::memory_order_relaxed)) [[unlikely]]
      return;
    try {
      task.function(task.context, thread, begin, end);
    } catch (...) {
      if (!task.hasFailed.exchange(true)) task.failure = std::current_exception();
    }
  }
};

size_t usableProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::clamp<size_t>(static_cast<size_t>(CPU_COUNT(&set)), 1, ThreadPool::kMaxThreads);
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(size_t threads) {
  HEARTH_ASSIGN(std::unique_ptr<ThreadPool> pool, createAsleep(threads));
  pool->generation_.store(base::ForkGate::generation());
  pool->callerProcessor_.store(base::currentProcessor(), std::memory_order_relaxed);
  HEARTH_TRY(pool->startWorkers());
  return pool;
}

Result<std::unique_ptr<ThreadPool>> ThreadPool::createAsleep(size_t threads) {
  if (threads > kMaxThreads)
    return fail(ErrorCode::kBadData, "A thread pool of {} threads exceeds the limit of {}.",
                threads, kMaxThreads);
  return std::unique_ptr<ThreadPool>(new ThreadPool(threads == 0 ? usableProcessors() : threads));
}

ThreadPool::ThreadPool(size_t threads)
    : threadCount_(threads), slots_(threads), generation_(kAsleep) {
  workers_.reserve(threads - 1);
}

ThreadPool::~ThreadPool() {
  if (generation_.load(std::memory_order_acquire) == base::ForkGate::generation()) stopWorkers();
}

Status ThreadPool::startWorkers() {
  // Signals belong to the program's own threads.
  const sigset_t all = base::signalsOfOthers();
  sigset_t previous;
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  int error = 0;
  while (error == 0 && workers_.size() + 1 < threadCount_) {
    pthread_t worker;
    error = pthread_create(&worker, nullptr, &ThreadPool::workerEntry, this);
    if (error != 0) break;
    base::makeOrdinary(worker);
    workers_.push_back(worker);
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  if (error != 0)
    return fail(ErrorCode::kResourceExhaustedTransient,
                "Thread {} of {} of a pool cannot be started: {}.", workers_.size() + 2,
                threadCount_, base::errnoError(error, "pthread_create").message());
  return {};
}

void ThreadPool::stopWorkers() {
  stopping_.store(true);
  wakeWord_.fetch_add(1);
  futexWake(wakeWord_, INT_MAX);
  for (pthread_t worker : workers_) pthread_join(worker, nullptr);
  workers_.clear();
}

// False while another thread starts the pool, the first time or again in a forked child.
bool ThreadPool::belongsToThisProcess() {
  const uint32_t current = base::ForkGate::generation();
  uint32_t mine = generation_.load(std::memory_order_acquire);
  if (mine == current) [[likely]]
    return true;
  // Inside the ForkGate, so that a child does not find the pool half started.
  const base::ForkGate::Inside inside;
  if (mine == kRebuilding || !generation_.compare_exchange_strong(mine, kRebuilding)) return false;
  // A forked child lacks the parent's threads: this discards their state.
  workers_.clear();
  state_.store(0);
  wakeWord_.store(0);
  sleepers_.store(0);
  activeRuns_.store(0);
  busy_.store(false);
  callerSleeps_.store(0);
  // Fewer workers, or none, only make calls slower.
  static_cast<void>(base::caught([this] { return startWorkers(); }));
  generation_.store(current, std::memory_order_release);
  return true;
}

ThreadPool::Counters ThreadPool::counters() const {
  return {calls_.load(std::memory_order_relaxed), serialCalls_.load(std::memory_order_relaxed),
          wakingCalls_.load(std::memory_order_relaxed)};
}

void ThreadPool::beginRun() {
  if (belongsToThisProcess()) activeRuns_.fetch_add(1, std::memory_order_relaxed);
}

void ThreadPool::endRun() {
  // A child that was forked within a run has reset the count of runs.
  uint32_t runs = activeRuns_.load(std::memory_order_relaxed);
  while (runs > 0 &&
         !activeRuns_.compare_exchange_weak(runs, runs - 1, std::memory_order_relaxed)) {
  }
}

void ThreadPool::runSerially(size_t count, RangeFunction function, void* context, uint32_t flags) {
  if (count == 0) return;
  FlushDenormals flush(flags & PTHREADPOOL_FLAG_DISABLE_DENORMALS);
  function(context, 0, 0, count);
}

void ThreadPool::run(size_t count, RangeFunction function, void* context, uint32_t flags) {
  calls_.fetch_add(1, std::memory_order_relaxed);
  if (count > 1 && threadCount_ > 1 && !insideTask && belongsToThisProcess()) {
    const size_t runs = activeRuns_.load(std::memory_order_relaxed);
    const size_t others = runs > 0 ? runs - 1 : 0;
    const size_t workers = others + 1 < threadCount_ ? threadCount_ - 1 - others : 0;
    if (workers > 0 && !busy_.exchange(true, std::memory_order_acquire)) {
      struct Release {
        std::atomic<bool>& busy;
        ~Release() { busy.store(false, std::memory_order_release); }
      } const release{busy_};
      for (size_t base = 0; base < count; base += kMaxItems) {
        const auto part = static_cast<uint32_t>(std::min<uint64_t>(count - base, kMaxItems));
        runShared(workers, base, part, function, context, flags);
      }
      return;
    }
  }
  if (count > 1) serialCalls_.fetch_add(1, std::memory_order_relaxed);
  runSerially(count, function, context, flags);
}

void ThreadPool::runShared(size_t workers, size_t base, uint32_t count, RangeFunction function,
                           void* context, uint32_t flags) {
  workers = std::min<size_t>(workers, count - 1);
  SharedTask task{function, context};
  job_ = {&SharedTask::run, &task, base, flags, workers + 1};
  ticketLimit_.store(static_cast<uint32_t>(workers), std::memory_order_relaxed);
  uint64_t begin = 0;
  for (size_t i = 0; i <= workers; ++i) {
    const uint64_t end = uint64_t{count} * (i + 1) / (workers + 1);
    slots_[i].range.store(packRange(begin, end), std::memory_order_relaxed);
    begin = end;
  }
  const uint32_t epoch = epochOf(state_.load(std::memory_order_relaxed)) + 1;
  state_.store(uint64_t{epoch} << 32 | kOpen, std::memory_order_release);
  // Sequentially consistent, as in waitForJob(): either the worker's futex sees the new word, or
  // this thread sees the sleeper.
  wakeWord_.store(epoch);
  callerProcessor_.store(base::currentProcessor(), std::memory_order_relaxed);
  if (sleepers_.load() > 0) {
    wakingCalls_.fetch_add(1, std::memory_order_relaxed);
    futexWake(wakeWord_, static_cast<int>(workers));
  }

  insideTask = true;
  {
    FlushDenormals flush(flags & PTHREADPOOL_FLAG_DISABLE_DENORMALS);
    work(0);
  }
  insideTask = false;
  waitForWorkers();
  if (task.failure != nullptr) [[unlikely]]
    std::rethrow_exception(task.failure);
}

void ThreadPool::waitForWorkers() {
  const auto done = [this] {
    return allReturned(state_.load(std::memory_order_acquire));
  };
  if (allReturned(state_.fetch_and(~kOpen, std::memory_order_acq_rel))) return;
  if (spinUntil(kCallerSpin, done)) return;
  while (true) {
    // Either this thread sees the last ticket, or the worker that returns it sees the sleeper.
    callerSleeps_.store(1);
    if (allReturned(state_.load())) break;
    futexWait(callerSleeps_, 1);
  }
  callerSleeps_.store(0);
}

void ThreadPool::work(size_t index) {
  const Job job = job_;
  std::atomic<uint64_t>& own = slots_[index].range;
  while (true) {
    uint64_t range = own.load(std::memory_order_relaxed);
    while (beginOf(range) < endOf(range)) {
      // Large pieces save atomic operations while much is left; single items balance the end.
      const uint64_t begin = beginOf(range);
      const uint64_t middle = begin + std::max<uint64_t>(1, (endOf(range) - begin) / 16);
      if (!own.compare_exchange_weak(range, packRange(middle, endOf(range)),
                                     std::memory_order_relaxed))
        continue;
      job.function(job.context, index, job.base + begin, job.base + middle);
      range = own.load(std::memory_order_relaxed);
    }
    bool stolen = false;
    for (size_t step = 1; step < job.participants && !stolen; ++step) {
      std::atomic<uint64_t>& victim = slots_[(index + step) % job.participants].range;
      uint64_t theirs = victim.load(std::memory_order_relaxed);
      while (beginOf(theirs) < endOf(theirs)) {
        const uint64_t middle = beginOf(theirs) + (endOf(theirs) - beginOf(theirs)) / 2;
        if (!victim.compare_exchange_weak(theirs, packRange(beginOf(theirs), middle),
                                          std::memory_order_relaxed))
          continue;
        own.store(packRange(middle, endOf(theirs)), std::memory_order_relaxed);
        stolen = true;
        break;
      }
    }
    if (!stolen) return;
  }
}

void* ThreadPool::workerEntry(void* pool) {
  static_cast<ThreadPool*>(pool)->workerLoop();
  return nullptr;
}

// True when there may be a job newer than `seen`, false when the pool stops. A worker spins while a
// run is active. It spins past the end of a run only if the last run was followed by another at
// once, as in a loop of inferences: waking it would take longer than the first operators of a small
// network. `*runsFollow` says so, and learns from this wait.
bool ThreadPool::waitForJob(uint32_t seen, bool maySpin, bool* runsFollow) {
  const auto news = [&] {
    return epochOf(state_.load(std::memory_order_relaxed)) != seen ||
           stopping_.load(std::memory_order_relaxed);
  };
  const auto ended = [&] {
    return activeRuns_.load(std::memory_order_relaxed) == 0;
  };
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  if (maySpin) spinUntil(kWorkerSpin, [&] { return news() || (ended() && !*runsFollow); });
  if (!news()) {
    const bool betweenRuns = ended();
    sleepers_.fetch_add(1);
    futexWait(wakeWord_, seen);
    sleepers_.fetch_sub(1);
    if (betweenRuns) *runsFollow = Clock::now() - begin < kSoon;
  }
  base::leaveProcessor(callerProcessor_.load(std::memory_order_relaxed));
  return !stopping_.load();
}

void ThreadPool::workerLoop() {
  base::takeOrdinaryScheduling();
  // Named only now: a thread with this name has ordinary scheduling.
  pthread_setname_np(pthread_self(), "hearth-worker");
  insideTask = true;
  base::leaveProcessor(callerProcessor_.load(std::memory_order_relaxed));
  uint32_t seen = 0;
  bool maySpin = false;
  bool runsFollow = false;
  while (waitForJob(seen, maySpin, &runsFollow)) {
    maySpin = true;
    uint64_t state = state_.load(std::memory_order_acquire);
    bool joined = false;
    while (epochOf(state) != seen && (state & kOpen) != 0 &&
           ticketsOf(state) < ticketLimit_.load(std::memory_order_relaxed)) {
      if (!state_.compare_exchange_weak(state, state + kTicket, std::memory_order_acq_rel,
                                        std::memory_order_acquire))
        continue;
      joined = true;
      break;
    }
    seen = epochOf(state);
    if (!joined) continue;
    const uint32_t flags = job_.flags;
    {
      FlushDenormals flush(flags & PTHREADPOOL_FLAG_DISABLE_DENORMALS);
      work(ticketsOf(state) + 1);
    }
    maySpin = (flags & PTHREADPOOL_FLAG_YIELD_WORKERS) == 0;
    const uint64_t after = state_.fetch_add(kReturned) + kReturned;
    if ((after & kOpen) == 0 && allReturned(after) && callerSleeps_.load() != 0) {
      callerSleeps_.store(0);
      futexWake(callerSleeps_, 1);
    }
  }
}

}  // namespace hearth::threads
