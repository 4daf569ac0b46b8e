// SPDX-License-Identifier: Apache-2.0
#include "failing_allocations.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

extern "C" {
// The C library's functions, which the functions below replace and call.
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace hearth::faults {
namespace {

std::atomic<bool> isArmed = false;
std::atomic<uint64_t> seen = 0;
std::atomic<uint64_t> first = 0;
std::atomic<uint64_t> last = 0;
std::atomic<bool> hasFailed = false;
std::atomic<pid_t> exempt = 0;

bool fails() {
  if (!isArmed.load(std::memory_order_acquire)) return false;
  if (const pid_t thread = exempt; thread != 0 && thread == ::gettid()) return false;
  const uint64_t number = seen.fetch_add(1) + 1;
  if (number < first || number > last) return false;
  hasFailed = true;
  errno = ENOMEM;
  return true;
}

}  // namespace

void failAllocation(uint64_t n, uint64_t count, Threads threads) {
  seen = 0;
  first = n;
  last = n + count - 1;
  hasFailed = false;
  exempt = threads == Threads::kOthers ? ::gettid() : 0;
  isArmed = true;
}

bool endFailures() {
  isArmed = false;
  return hasFailed;
}

uint64_t allocationCount() {
  return seen;
}

}  // namespace hearth::faults

using hearth::faults::fails;

extern "C" {

void* malloc(size_t size) {
  return fails() ? nullptr : __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  return fails() ? nullptr : __libc_calloc(count, size);
}

void* realloc(void* memory, size_t size) {
  return fails() ? nullptr : __libc_realloc(memory, size);
}

void* memalign(size_t alignment, size_t size) {
  return fails() ? nullptr : __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  return memalign(alignment, size);
}

int posix_memalign(void** memory, size_t alignment, size_t size) {
  void* const made = memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *memory = made;
  return 0;
}

}  // extern "C"
