// SPDX-License-Identifier: Apache-2.0
// All environment variables that Hearth reads, in one table. Code asks by enumerator, so that an
// undocumented variable cannot be read (tools/check_environment.py), and so that a process with
// more rights than its starter ignores all of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hearth::base {

enum class Env {
  kLog,
  kTrace,
  kThreads,
  kPreparation,
  kTuning,
  kDriverPath,
  kDriverHosts,
  kVulkanDevice,
  kListenFds,
  kListenPid,
  kNotifySocket,
  kWatchdogMicroseconds,
  kWatchdogPid,
  kStore,
  kStoreMode,
  kStoreSize,
  kSystemStores,
  kReport,
  kAtExit,
  kCrashAt,
  kFault,
  kPackingSalt,
  kHome,
  kCacheHome,
  kStateHome,
  kRuntimeDir,
  kTemporary,
};

enum class EnvKind { kString, kChoice, kInteger, kBytes };

// One row of the table. All pointers are to static storage.
struct EnvVariable {
  Env id;
  const char* name;
  EnvKind kind;
  const char* standard;      // the value, as text, when the variable is unset or empty
  const char* meaning;       // one sentence, for documentation
  const char* choices = "";  // kChoice: the allowed words, separated by '|'
  int64_t least = 0;         // kInteger, kBytes: the range, both ends included
  int64_t most = INT64_MAX;
};

// The whole table, in the order of the enumerators.
std::span<const EnvVariable> environmentVariables();
const EnvVariable& environmentVariable(Env id);

namespace internal {
// Negative: ask the kernel. Set by tests.
inline std::atomic<int> secureProcess = -1;
}  // namespace internal

// Whether the process has rights that its starter lacks (set-uid, set-gid, file capabilities). The
// environment is the starter's, so every variable then counts as unset.
bool isSecureProcess();

// The value of a variable, or its standard value when it is unset or empty. Each getter is for one
// kind of variable. Errors: kBadState for another kind; kBadData for a value that is not one of the
// choices, not a number, or out of range. Thread-safe while nobody calls setenv.
std::string envString(Env id);
Result<std::string> envChoice(Env id);
Result<int64_t> envInteger(Env id);
Result<uint64_t> envBytes(Env id);
// For kString. Empty unless the value is an absolute path: the XDG Base Directory Specification
// says that relative ones are to be ignored.
std::string envFolder(Env id);

// The same rules for texts from elsewhere (flags); `name` is used in messages.
Result<std::string> parseChoice(std::string_view name, std::string_view text,
                                std::string_view choices);
Result<int64_t> parseInteger(std::string_view name, std::string_view text, int64_t least,
                             int64_t most);
// A whole number of bytes with an optional K, M, G or T for powers of 1024, in either case.
Result<uint64_t> parseBytes(std::string_view name, std::string_view text);

}  // namespace hearth::base
