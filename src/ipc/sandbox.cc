// SPDX-License-Identifier: Apache-2.0
#include "ipc/sandbox.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/env.h"
#include "ipc/sandbox_threads.h"

namespace hearth::ipc {
namespace {

// Lowers both the limit and what it may be raised to.
Status lower(__rlimit_resource_t resource, uint64_t most, const char* name) {
  rlimit limit;
  if (::getrlimit(resource, &limit) != 0)
    return std::unexpected(base::errnoError(errno, base::formatText("Reading the limit {}", name)));
  limit.rlim_cur = limit.rlim_max = std::min<rlim_t>(limit.rlim_max, most);
  if (::setrlimit(resource, &limit) != 0)
    return std::unexpected(base::errnoError(
        errno, base::formatText("Lowering the limit {} to {}", name, limit.rlim_cur)));
  return {};
}

Status impose(const ProcessLimits& limits) {
  // A client's data is in the memory that a core file shows. One byte is not enough for a file, and
  // unlike none it also keeps the kernel from passing the memory on to a program.
  HEARTH_TRY(lower(RLIMIT_CORE, 1, "RLIMIT_CORE"));
  if (limits.addressSpace != 0) HEARTH_TRY(lower(RLIMIT_AS, limits.addressSpace, "RLIMIT_AS"));
  if (limits.writableMemory != 0)
    HEARTH_TRY(lower(RLIMIT_DATA, limits.writableMemory, "RLIMIT_DATA"));
  if (limits.descriptors != 0)
    HEARTH_TRY(lower(RLIMIT_NOFILE, limits.descriptors, "RLIMIT_NOFILE"));
  if (limits.threads != 0) HEARTH_TRY(lower(RLIMIT_NPROC, limits.threads, "RLIMIT_NPROC"));
  return {};
}

int forbidNewPrivileges(int) {
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno;
}

Status restrictFiles(const FileRules& rules, SandboxState& state) {
  Result<Landlock> landlock = Landlock::prepare(rules);
  if (!landlock) {
    if (landlock.error().code() != ErrorCode::kUnsupported)
      return std::unexpected(std::move(landlock.error()));
    state.gaps.push_back(landlock.error().message());
    return onEveryThread(&forbidNewPrivileges, 0);
  }
  state.restrictsFiles = true;
  state.gaps.insert(state.gaps.end(), landlock->gaps().begin(), landlock->gaps().end());
  return onEveryThread(&Landlock::restrictThread, landlock->fd());
}

Status restrictCalls(const SandboxRules& rules, SandboxState& state) {
  const Status filtered = filterCalls({.acceptsConnections = rules.acceptsConnections,
                                       .loadsCode = rules.loadsCode,
                                       .controlsDevices = !rules.files.devices.empty()});
  if (filtered) {
    state.filtersCalls = true;
    return {};
  }
  if (filtered.error().code() != ErrorCode::kUnsupported) return filtered;
  state.gaps.push_back(filtered.error().message());
  return {};
}

Status checkGaps(const SandboxRules& rules, const SandboxState& state) {
  if (rules.mode != SandboxMode::kRequire || state.gaps.empty()) return {};
  return fail(ErrorCode::kUnsupported, "The sandbox is required and not complete. {}",
              state.gaps.front());
}

}  // namespace

Result<SandboxMode> parseSandboxMode(std::string_view text) {
  HEARTH_ASSIGN(const std::string mode,
                base::parseChoice("The mode of the sandbox", text, "off|on|require"));
  if (mode == "off") return SandboxMode::kOff;
  return mode == "on" ? SandboxMode::kOn : SandboxMode::kRequire;
}

std::vector<std::string> systemFilesToRead() {
  std::vector<std::string> paths = {
      "/etc/localtime",                   // times in the log
      "/proc/self",                       // memory that the process has
      "/proc/meminfo",                    // memory of the machine
      "/proc/cpuinfo",                    // processors; some architectures tell them only here
      "/proc/sys/kernel/random/boot_id",  // whether the store's notes are of this boot
      "/proc/sys/vm/overcommit_memory",   // how the C library gives memory back
      "/dev/urandom",                     // SQLite's random numbers
      "/sys/dev/block",                   // which disk the store is on
      "/sys/devices",                     // processors, caches and disks
  };
  std::erase_if(paths, [](const std::string& path) { return ::access(path.c_str(), R_OK) != 0; });
  return paths;
}

Result<SandboxState> enterSandbox(const SandboxRules& rules) {
  SandboxState state;
  if (rules.mode == SandboxMode::kOff) {
    state.gaps.push_back("The sandbox is off.");
    return state;
  }
  HEARTH_TRY(impose(rules.limits));
  HEARTH_TRY(restrictFiles(rules.files, state));
  HEARTH_TRY(checkGaps(rules, state));
  HEARTH_TRY(restrictCalls(rules, state));
  HEARTH_TRY(checkGaps(rules, state));
  return state;
}

}  // namespace hearth::ipc
