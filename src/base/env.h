// SPDX-License-Identifier: Apache-2.0
// Every environment variable that Hearth reads, in one table. Code asks by enumerator, so that a
// variable that is not documented there cannot be read (tools/check_environment.py), and so that
// all of them are left alone in a process whose environment is somebody else's.
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
  kTemporary,
};

enum class EnvKind { kString, kChoice, kInteger, kBytes };

// One row of the table. All pointers are to static storage.
struct EnvVariable {
  Env id;
  const char* name;
  EnvKind kind;
  const char* standard;      // the value when the variable is unset or empty, as text
  const char* meaning;       // one sentence for documentation
  const char* choices = "";  // kChoice: the words allowed, separated by '|'
  int64_t least = 0;         // kInteger, kBytes: the range, both ends included
  int64_t most = INT64_MAX;
};

// The whole table, in the order of the enumerators.
std::span<const EnvVariable> environmentVariables();
const EnvVariable& environmentVariable(Env id);

namespace internal {
// Negative: as the kernel says. For tests.
inline std::atomic<int> secureProcess = -1;
}  // namespace internal

// Whether the process has rights that whoever started it lacks (set-uid, set-gid or capabilities of
// its file). The environment is that person's: every variable then counts as unset.
bool isSecureProcess();

// The value of a variable, or its standard value when it is unset or empty. Each getter is for the
// kind of its name; asking a variable of another kind gives kBadState. A value that is not one of
// the choices, no number or out of range gives kBadData. Thread-safe while nobody calls setenv.
std::string envString(Env id);
Result<std::string> envChoice(Env id);
Result<int64_t> envInteger(Env id);
Result<uint64_t> envBytes(Env id);
// Of kString. Empty when the value is no absolute path: the XDG Base Directory Specification wants
// relative ones ignored.
std::string envFolder(Env id);

// The same rules for texts from elsewhere (flags); `name` is for the message.
Result<std::string> parseChoice(std::string_view name, std::string_view text,
                                std::string_view choices);
Result<int64_t> parseInteger(std::string_view name, std::string_view text, int64_t least,
                             int64_t most);
// A whole number of bytes with an optional K, M, G or T for powers of 1024, in either case.
Result<uint64_t> parseBytes(std::string_view name, std::string_view text);

}  // namespace hearth::base
