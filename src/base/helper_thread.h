// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>

namespace hearth::base {

// Starts a thread that the program does not know: its signal handlers do not run there (see
// signalsOfOthers), and it starts on another processor than the caller's if it may. `name`, at most
// 15 characters, is what tools show. Not joinable where no thread can be had; `run` is then not
// run.
[[nodiscard]] std::thread startHelperThread(const char* name, std::function<void()> run);

// The same for what can wait: it runs where nobody else does (SCHED_IDLE), on whatever processor
// that is. Its maker says so before its first turn: a thread that lowers itself has first taken
// somebody's, 4 ms where the kernel's clock ticks 250 times a second. It must not hold a lock that
// others wait for.
[[nodiscard]] std::thread startIdleThread(const char* name, std::function<void()> run);

}  // namespace hearth::base
