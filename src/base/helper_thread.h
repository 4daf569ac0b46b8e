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

}  // namespace hearth::base
