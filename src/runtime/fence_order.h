// SPDX-License-Identifier: Apache-2.0
// Who finds a fence signalled comes after who signalled it: the kernel orders the two. The thread
// sanitizer sees no order through epoll and poll, and is told here.
#pragma once

#if defined(__SANITIZE_THREAD__)
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace hearth::runtime {

#if defined(__SANITIZE_THREAD__)
inline char fenceOrder = 0;  // one for all fences: more order than there is, never less

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

}  // namespace hearth::runtime
