// SPDX-License-Identifier: Apache-2.0
#include "memory/sigbus_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "base/fork_gate.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/thread_local.h"
#include "memory/sigbus_order.h"

namespace hearth::memory {
namespace {

// Read by the handler, which takes no locks and no memory. The end of a free slot is zero.
struct Slot {
  std::atomic<uintptr_t> begin = 0;
  std::atomic<uintptr_t> end = 0;
  std::atomic<bool> hasLosses = false;
  bool isOfFile = false;  // guarded by slotMutex
};

constexpr size_t kSlots = 8192;
constinit std::array<Slot, kSlots> slots;
constinit std::atomic<size_t> usedSlots = 0;  // the slots after them were never used
constinit std::atomic<uint64_t> losses = 0;
// Handlers that may have put zeros in place and have not counted the loss, and the generation of
// the ForkGate that they belong to.
constinit std::atomic<uint32_t> uncounted = 0;
constinit std::atomic<uint32_t> generation = 0;
uintptr_t watchedPageSize = 0;  // set before the first range is watched
size_t firstFree = 0;           // all slots before it are taken; guarded by slotMutex
size_t watchedRanges = 0;       // of files; guarded by slotMutex
constinit base::Mutex slotMutex;

// What SIGBUS meant when our handler was installed. Entries are only added, since running handlers
// read them; one that fits is used again.
struct Previous {
  struct sigaction action{};
  int below = -1;                     // index of what it meant before that
  std::atomic<bool> isUsedUp{false};  // SA_RESETHAND, and already called
};
constexpr int kMostPrevious = 64;
constinit std::array<Previous, kMostPrevious> previous{};
int previousCount = 0;                // guarded by slotMutex
constinit std::atomic<int> top = -1;  // the entry that our handler replaces

// The program's handler may call the one that it replaced, which is ours. So we count how many
// handlers the signal has been passed to, behind the part of the siginfo that the kernel fills.
// Other libraries may have a copy of this code, so each copy has a mark of its own.
struct Mark {
  uint32_t owner;
  uint16_t magic;
  uint16_t passedOn;
};
constexpr uint16_t kMagic = 0x4872;
constexpr size_t kMarks = 8;

// An address of this copy.
uint32_t owner() {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(&top) / alignof(Previous));
}

char* placeOf(siginfo_t* info, size_t mark) {
  static_assert(sizeof(siginfo_t) == 2 * kMarks * sizeof(Mark));
  return reinterpret_cast<char*>(info + 1) - (mark + 1) * sizeof(Mark);
}

// Counts one more handler, and returns how many there were before; a negative number where other
// copies have taken all places.
int passOn(siginfo_t* info) {
  for (size_t i = 0; i < kMarks; ++i) {
    Mark mark;
    std::memcpy(&mark, placeOf(info, i), sizeof mark);
    if (mark.magic != kMagic) mark = {owner(), kMagic, 0};
    if (mark.owner != owner()) continue;
    const int before = mark.passedOn++;
    std::memcpy(placeOf(info, i), &mark, sizeof mark);
    return before;
  }
  return -1;
}

// Counts the calling handler in `uncounted` while it exists.
class Uncounted {
 public:
  Uncounted() { uncounted.fetch_add(1); }
  ~Uncounted() { uncounted.fetch_sub(1); }
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;
};

// Maps zeros from the page of `address` to the end of each range around it.
bool replace(uintptr_t address) {
  const Uncounted uncounted;
  bool isWatched = false;
  for (size_t i = 0; i < usedSlots.load(std::memory_order_acquire); ++i) {
    Slot& slot = slots[i];
    const uintptr_t end = slot.end.load(std::memory_order_acquire);
    // Acquired, so that the second look at the end comes after it: who has seen the begin of a
    // later range sees there that the earlier one has ended.
    const uintptr_t begin = slot.begin.load(std::memory_order_acquire);
    if (address < begin || address >= end) continue;
    // The slot may have been given to another range meanwhile.
    if (slot.end.load(std::memory_order_relaxed) != end) continue;
    const uintptr_t page = address / watchedPageSize * watchedPageSize;
    const uintptr_t stop = (end + watchedPageSize - 1) / watchedPageSize * watchedPageSize;
    // Writable, since the range may be. Nobody is to see what is written there.
    if (::mmap(reinterpret_cast<void*>(page), stop - page, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
      return false;
    slot.hasLosses.store(true, std::memory_order_release);
    isWatched = true;
  }
  if (isWatched) losses.fetch_add(1, std::memory_order_release);
  return isWatched;
}

// A handler that runs while another thread forks does not end in the child. The first call in the
// child comes while it has one thread: from a handler of the fork.
void forgetHandlersOfParent() {
  const uint32_t current = base::ForkGate::generation();
  if (generation.load(std::memory_order_relaxed) == current) return;
  generation.store(current, std::memory_order_relaxed);
  uncounted.store(0);
}

// Another thread's handler may have put zeros in place that the caller has just read.
void waitForHandlers() {
  // Processors with weak ordering may load the count before bytes that the caller loaded first, and
  // so miss the handler that made zeros of them.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (uncounted.load() == 0) [[likely]]
    return;
  // Other handlers of the fork may ask before ours is called.
  forgetHandlersOfParent();
  while (uncounted.load() != 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
}

// Does what the kernel would have done without us.
void doStandardAction(bool isFault) {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  struct sigaction ours;
  ::sigaction(SIGBUS, &standard, &ours);
  // The instruction faults again, and the process ends with the right address in its core dump.
  if (isFault) return;
  ::raise(SIGBUS);
  // The init process of a container survives its own signals, so the handler is installed again.
  ::sigaction(SIGBUS, &ours, nullptr);
}

void callPrevious(Previous& before, int signal, siginfo_t* info, void* context) {
  const struct sigaction& action = before.action;
  // Otherwise it was sent, by kill() or the like.
  const bool isFault = info->si_code > 0;
  if (action.sa_handler == SIG_IGN && !isFault) return;
  const bool hasHandler = action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
  const bool isOnce = (action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0;
  if (!hasHandler || (isOnce && before.isUsedUp.exchange(true))) return doStandardAction(isFault);
  sigset_t blocked = action.sa_mask;
  if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&blocked, SIGBUS);
  sigset_t mask;
  ::pthread_sigmask(SIG_BLOCK, &blocked, &mask);
  if ((action.sa_flags & SA_SIGINFO) != 0)
    action.sa_sigaction(signal, info, context);
  else
    action.sa_handler(signal);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

void onBusError(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool isOfPage = info->si_code == BUS_ADRERR || info->si_code == BUS_MCEERR_AR;
  if (!isOfPage || !replace(reinterpret_cast<uintptr_t>(info->si_addr))) {
    const int count = passOn(info);
    int index = count < 0 ? -1 : top.load(std::memory_order_acquire);
    for (int i = 0; i < count && index >= 0; ++i)
      index = previous[static_cast<size_t>(index)].below;
    if (index >= 0)
      callPrevious(previous[static_cast<size_t>(index)], signal, info, context);
    else
      doStandardAction(info->si_code > 0);
  }
  errno = error;
}

bool isOurs(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == onBusError;
}

// The kernel fills only a part of a mask, so only the signals are compared.
bool areEqual(const sigset_t& a, const sigset_t& b) {
  for (int signal = 1; signal < NSIG; ++signal)
    if (sigismember(&a, signal) != sigismember(&b, signal)) return false;
  return true;
}

// The index of the entry for what was found in place of our handler; negative when there is no
// room.
int findPrevious(const struct sigaction& found) {
  const int below = top.load(std::memory_order_relaxed);
  for (int i = 0; i < previousCount; ++i) {
    const Previous& known = previous[static_cast<size_t>(i)];
    if (known.below == below && known.action.sa_handler == found.sa_handler &&
        known.action.sa_flags == found.sa_flags && !known.isUsedUp.load() &&
        areEqual(known.action.sa_mask, found.sa_mask))
      return i;
  }
  if (previousCount == kMostPrevious) return -1;
  previous[static_cast<size_t>(previousCount)].action = found;
  previous[static_cast<size_t>(previousCount)].below = below;
  return previousCount++;
}

// Installs our handler unless it is there already. slotMutex is held.
void install() {
  static const bool isRegistered = [] {
    base::ForkGate::atFork({.afterInChild = forgetHandlersOfParent});
    return true;
  }();
  static_cast<void>(isRegistered);
  struct sigaction found{};
  if (::sigaction(SIGBUS, nullptr, &found) != 0 || isOurs(found)) return;
  watchedPageSize = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const int index = findPrevious(found);
  if (index < 0)
    return base::logWarn(
        "Files of the weight store are not guarded against being truncated: the "
        "handler of SIGBUS changes too often.");
  if (top.load(std::memory_order_relaxed) >= 0)
    base::logInfo("The program has set another handler of SIGBUS; ours is put before it.");
  top.store(index, std::memory_order_release);
  struct sigaction action{};
  action.sa_sigaction = onBusError;
  // Threads of some languages have small stacks and an alternate one for signals.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  ::sigaction(SIGBUS, &action, nullptr);
}

// Restores what was there, unless the program has installed something else since. slotMutex is
// held.
void uninstall() {
  struct sigaction present{};
  const int index = top.load(std::memory_order_relaxed);
  if (index < 0 || ::sigaction(SIGBUS, nullptr, &present) != 0 || !isOurs(present)) return;
  const Previous& before = previous[static_cast<size_t>(index)];
  struct sigaction action = before.action;
  if (before.isUsedUp.load()) action.sa_handler = SIG_DFL;
  ::sigaction(SIGBUS, &action, nullptr);
  top.store(before.below, std::memory_order_release);
}

// What the thread's WatchedTogether has done so far.
enum class Together : uint8_t { kNone, kNotLooked, kLooked, kSkipped };
HEARTH_THREAD_LOCAL constinit Together together = Together::kNone;

// For one more range of a file. slotMutex is held.
void addRange() {
  // Whoever ends the last range takes the handler away.
  if (together < Together::kLooked || watchedRanges == 0) {
    install();
    if (together == Together::kNotLooked) together = Together::kLooked;
  } else {
    together = Together::kSkipped;
  }
  ++watchedRanges;
}

}  // namespace

WatchedPages::WatchedPages(const void* begin, size_t size, Of of) {
  if (size == 0) return;
  const std::lock_guard lock(slotMutex);
  const size_t used = usedSlots.load(std::memory_order_relaxed);
  size_t slot = firstFree;
  while (slot < used && slots[slot].end.load(std::memory_order_relaxed) != 0) ++slot;
  firstFree = slot;
  if (slot == kSlots) return;
  slots[slot].isOfFile = of == Of::kFile;
  if (slots[slot].isOfFile) addRange();
  slots[slot].hasLosses.store(false, std::memory_order_relaxed);
  // Released, so that nobody sees it beside the end of the slot's earlier range and takes both for
  // one: that end was set to zero before.
  slots[slot].begin.store(reinterpret_cast<uintptr_t>(begin), std::memory_order_release);
  slots[slot].end.store(reinterpret_cast<uintptr_t>(begin) + size, std::memory_order_release);
  if (slot == used) usedSlots.store(used + 1, std::memory_order_release);
  slot_ = slot;
}

WatchedPages::WatchedPages(WatchedPages&& other) noexcept
    : slot_(std::exchange(other.slot_, kNone)) {}

WatchedPages& WatchedPages::operator=(WatchedPages&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

WatchedPages::~WatchedPages() {
  if (slot_ == kNone) return;
  const std::lock_guard lock(slotMutex);
  slots[slot_].end.store(0, std::memory_order_release);
  firstFree = std::min(firstFree, slot_);
  if (slots[slot_].isOfFile && --watchedRanges == 0) uninstall();
}

void WatchedPages::becomeFile() {
  if (slot_ == kNone) return;
  const std::lock_guard lock(slotMutex);
  if (slots[slot_].isOfFile) return;
  slots[slot_].isOfFile = true;
  addRange();
}

bool WatchedPages::hasLosses() const {
  waitForHandlers();
  return slot_ != kNone && slots[slot_].hasLosses.load(std::memory_order_acquire);
}

void WatchedPages::forgetLosses() {
  if (slot_ != kNone) slots[slot_].hasLosses.store(false, std::memory_order_release);
}

WatchedTogether::WatchedTogether() : isOuter_(together == Together::kNone) {
  if (isOuter_) together = Together::kNotLooked;
}

WatchedTogether::~WatchedTogether() {
  if (isOuter_ && std::exchange(together, Together::kNone) == Together::kSkipped)
    putSigbusGuardFirst();
}

bool areLost(const void* begin, size_t size) {
  waitForHandlers();
  const auto first = reinterpret_cast<uintptr_t>(begin);
  for (size_t i = 0; i < usedSlots.load(std::memory_order_acquire); ++i) {
    const Slot& slot = slots[i];
    const uintptr_t end = slot.end.load(std::memory_order_acquire);
    if (first < end && slot.begin.load(std::memory_order_relaxed) < first + size &&
        slot.hasLosses.load(std::memory_order_acquire))
      return true;
  }
  return false;
}

void putSigbusGuardFirst() {
  const std::lock_guard lock(slotMutex);
  if (watchedRanges > 0) install();
}

uint64_t lossCount() {
  waitForHandlers();
  return losses.load(std::memory_order_acquire);
}

}  // namespace hearth::memory
