// SPDX-License-Identifier: Apache-2.0
#include "memory/lost_pages.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

namespace hearth::memory {
namespace {

// What the handler reads: no locks and no memory of its own. A free slot has an end of zero.
struct Slot {
  std::atomic<uintptr_t> begin = 0;
  std::atomic<uintptr_t> end = 0;
  std::atomic<bool> hasLosses = false;
};

constexpr size_t kSlots = 8192;
constinit std::array<Slot, kSlots> slots;
constinit std::atomic<size_t> usedSlots = 0;  // those behind were never used
constinit std::atomic<uint64_t> losses = 0;
constinit struct sigaction previous{};
uintptr_t pageSize = 0;
size_t firstFree = 0;  // all slots before it are taken; under slotMutex()

std::mutex& slotMutex() {
  static std::mutex mutex;
  return mutex;
}

// Zeros from the page of `address` to the end of each range around it.
bool replace(uintptr_t address) {
  bool isWatched = false;
  for (size_t i = 0; i < usedSlots.load(std::memory_order_acquire); ++i) {
    Slot& slot = slots[i];
    const uintptr_t end = slot.end.load(std::memory_order_acquire);
    const uintptr_t begin = slot.begin.load(std::memory_order_relaxed);
    if (address < begin || address >= end) continue;
    // The slot may have got another range meanwhile.
    if (slot.end.load(std::memory_order_acquire) != end) continue;
    const uintptr_t page = address / pageSize * pageSize;
    const uintptr_t stop = (end + pageSize - 1) / pageSize * pageSize;
    if (::mmap(reinterpret_cast<void*>(page), stop - page, PROT_READ,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
      return false;
    slot.hasLosses.store(true, std::memory_order_release);
    isWatched = true;
  }
  if (isWatched) losses.fetch_add(1, std::memory_order_release);
  return isWatched;
}

void onBusError(int signal, siginfo_t* info, void* context) {
  const bool isOfFile = info->si_code == BUS_ADRERR;
  if (isOfFile && replace(reinterpret_cast<uintptr_t>(info->si_addr))) return;
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr)
    return previous.sa_sigaction(signal, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
    return previous.sa_handler(signal);
  // The instruction faults again, and the process ends as it would have without us.
  ::signal(signal, SIG_DFL);
}

void installOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    pageSize = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action{};
    action.sa_sigaction = onBusError;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
    ::sigaction(SIGBUS, &action, &previous);
  });
}

}  // namespace

WatchedPages::WatchedPages(const void* begin, size_t size) {
  if (size == 0) return;
  installOnce();
  const std::lock_guard lock(slotMutex());
  const size_t used = usedSlots.load(std::memory_order_relaxed);
  size_t slot = firstFree;
  while (slot < used && slots[slot].end.load(std::memory_order_relaxed) != 0) ++slot;
  firstFree = slot;
  if (slot == kSlots) return;
  slots[slot].hasLosses.store(false, std::memory_order_relaxed);
  slots[slot].begin.store(reinterpret_cast<uintptr_t>(begin), std::memory_order_relaxed);
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
  const std::lock_guard lock(slotMutex());
  slots[slot_].end.store(0, std::memory_order_release);
  firstFree = std::min(firstFree, slot_);
}

bool WatchedPages::hasLosses() const {
  return slot_ != kNone && slots[slot_].hasLosses.load(std::memory_order_acquire);
}

void WatchedPages::forgetLosses() {
  if (slot_ != kNone) slots[slot_].hasLosses.store(false, std::memory_order_release);
}

uint64_t lossCount() {
  return losses.load(std::memory_order_acquire);
}

}  // namespace hearth::memory
