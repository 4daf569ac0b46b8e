// SPDX-License-Identifier: Apache-2.0
// The strings of tensors. An element of a tensor of strings is the handle of a string in the heap
// of this process, in which equal strings have one handle. Handles mean nothing in other processes
// and nothing in files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/result.h"

namespace hearth::memory {

// 0 is the empty string, so that zeroed memory is a tensor of empty strings. No other handle is
// ever given to a second string.
using StringHandle = uint64_t;

// The heap keeps a string as long as a scope has it. The strings of a run's inputs have a scope,
// and so has what the run computes. Thread-safe.
class StringScope {
 public:
  StringScope() = default;
  ~StringScope();
  StringScope(const StringScope&) = delete;
  StringScope& operator=(const StringScope&) = delete;

  // The handle of a string, any bytes. kOutOfMemory when the strings of the process would take more
  // than half of the machine's memory.
  Result<StringHandle> put(std::string_view text);
  // Keeps strings that another scope has. kNotFound for a handle that none has.
  Status keep(std::span<const StringHandle> handles);
  // A string of this scope, which lives as long as the scope; a zero follows it. Null for any
  // other.
  std::optional<std::string_view> find(StringHandle handle) const;

 private:
  friend class StringHeap;
  std::unordered_set<StringHandle> handles_;  // without 0
};

// Copies any string that a scope has. kNotFound for any other handle: each value is safe to ask
// for. Thread-safe.
Result<std::string> readString(StringHandle handle);

// Puts a string into the scope of the calling thread. Errors as StringScope::put(); kBadState
// without a scope.
Result<StringHandle> putString(std::string_view text);

// Makes a scope that of the calling thread as long as this exists. Not movable.
class StringScopeOfThread {
 public:
  explicit StringScopeOfThread(StringScope* scope);
  ~StringScopeOfThread();
  StringScopeOfThread(const StringScopeOfThread&) = delete;
  StringScopeOfThread& operator=(const StringScopeOfThread&) = delete;

 private:
  StringScope* const before_;
};

}  // namespace hearth::memory
