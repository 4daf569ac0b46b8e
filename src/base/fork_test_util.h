// SPDX-License-Identifier: Apache-2.0
// Skips tests that fork a process with threads, where a sanitizer cannot run them. The release
// build runs all of them.
#pragma once

#include <gtest/gtest.h>

// At the beginning of a test whose forked child starts threads.
#if defined(__SANITIZE_THREAD__)
#define HEARTH_SKIP_THREADS_AFTER_FORK() \
  GTEST_SKIP() << "The thread sanitizer allows no threads in a child of a threaded process."
#else
#define HEARTH_SKIP_THREADS_AFTER_FORK() static_cast<void>(0)
#endif

// At the beginning of a test that forks while other threads of the parent allocate.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HEARTH_SKIP_FORK_AMID_ALLOCATIONS()                                                        \
  GTEST_SKIP() << "In a child the sanitizer's allocator may be locked for ever, by a thread that " \
                  "allocated in the parent."
#else
#define HEARTH_SKIP_FORK_AMID_ALLOCATIONS() static_cast<void>(0)
#endif
