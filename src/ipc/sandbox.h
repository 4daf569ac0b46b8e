// SPDX-License-Identifier: Apache-2.0
// What a driver host gives up after its start and before the first byte of a client.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ipc/call_filter.h"
#include "ipc/landlock.h"

namespace hearth::ipc {

enum class SandboxMode {
  kOff,      // nothing is given up
  kOn,       // as much as the kernel can do
  kRequire,  // all of it, or the process does not serve
};

// "off", "on" or "require". Error: kBadData.
Result<SandboxMode> parseSandboxMode(std::string_view text);

// Limits of the process, zero: as they are. They are only lowered.
struct ProcessLimits {
  // Bytes of addresses. What a driver maps counts, also of files; not for sanitizers, which reserve
  // terabytes.
  uint64_t addressSpace = 0;
  // Bytes of private memory that can be written (RLIMIT_DATA): what a driver allocates.
  uint64_t writableMemory = 0;
  uint64_t descriptors = 0;
  // Counts the threads of all processes of the user, and does not hold for root: for a host that is
  // its user's only process. The host itself bounds what each client gets.
  uint64_t threads = 0;
};

struct SandboxRules {
  SandboxMode mode = SandboxMode::kOn;
  FileRules files;  // devices are controlled with ioctl
  bool acceptsConnections = false;
  bool loadsCode = false;
  ProcessLimits limits;
};

// What the process has given up.
struct SandboxState {
  bool restrictsFiles = false;
  bool filtersCalls = false;
  // What the process can do although it was to give it up: sentences for the log.
  std::vector<std::string> gaps;
};

// The files of the system that the C library and our own read while a process runs, as far as they
// exist here; for FileRules::readOnly.
std::vector<std::string> systemFilesToRead();

// Restricts the whole process as `rules` say, for ever: limits, no core file, no new privileges,
// Landlock, and a filter of system calls; see there. Threads may run already: SIGSYS interrupts
// them. Descriptors that are open stay so; close first what the host is not to use. Call it once.
// Errors: kUnsupported in the mode kRequire, with what the kernel lacks; kNotFound and kIo with a
// path; kBadState when a thread takes no signal. The process may be restricted in part then, and is
// to end.
Result<SandboxState> enterSandbox(const SandboxRules& rules);

}  // namespace hearth::ipc
