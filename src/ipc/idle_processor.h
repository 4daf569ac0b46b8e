// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hearth::ipc {

// Whether every thread of the machine that can run has a processor, the caller among them. It may
// be otherwise a moment later. False where the kernel does not tell. Reads a file of /proc, which
// takes some microseconds.
bool hasIdleProcessor();

// How many threads could run when the kernel wrote this text, that of /proc/loadavg; nothing if it
// is another one.
std::optional<uint32_t> runnableThreads(std::string_view text);

}  // namespace hearth::ipc
