// SPDX-License-Identifier: Apache-2.0
// A thread that finds a fence signalled runs after the thread that signalled it: the kernel orders
// the two. ThreadSanitizer sees no order through epoll and poll, so these functions tell it.
#pragma once

#if defined(__SANITIZE_THREAD__)
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace hearth::base {

#if defined(__SANITIZE_THREAD__)
inline char fenceOrder = 0;  // one for all fences: implies more order than exists, never less

inline void beforeSignallingFence() {
  __tsan_release(&fenceOrder);
}
inline void afterFindingFenceSignalled() {
  __tsan_acquire(&fenceOrder);
}
#else
inline void beforeSignallingFence() {}
inline void afterFindingFenceSignalled() {}
#endif

}  // namespace hearth::base
