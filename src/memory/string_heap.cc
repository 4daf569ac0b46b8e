// SPDX-License-Identifier: Apache-2.0
#include "memory/string_heap.h"

#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/immortal.h"
#include "base/mutex.h"
#include "base/thread_local.h"
#include "memory/limits.h"

namespace hearth::memory {

class StringHeap {
 public:
  static StringHeap& ofProcess();

  Result<StringHandle> put(std::string_view text, StringScope* scope) {
    if (text.empty()) return StringHandle{0};
    const std::lock_guard lock(mutex_);
    auto place = handles_.find(text);
    if (place == handles_.end()) {
      const uint64_t bytes = bytesOf(text);
      if (bytes > limit_ - bytes_)
        return fail(ErrorCode::kOutOfMemory,
                    "The strings of this process take {} bytes, and one of {} bytes would exceed "
                    "the limit of {}.",
                    bytes_, text.size(), limit_);
      const auto made = strings_.try_emplace(next_, Entry{std::string(text), 0}).first;
      place = handles_.emplace(std::string_view(made->second.text), next_).first;
      ++next_;
      bytes_ += bytes;
    }
    const StringHandle handle = place->second;
    if (scope->handles_.insert(handle).second) ++strings_.find(handle)->second.scopes;
    return handle;
  }

  Status keep(std::span<const StringHandle> handles, StringScope* scope) {
    const std::lock_guard lock(mutex_);
    for (const StringHandle handle : handles) {
      if (handle == 0) continue;
      const auto found = strings_.find(handle);
      if (found == strings_.end()) return unknown(handle);
      if (scope->handles_.insert(handle).second) ++found->second.scopes;
    }
    return {};
  }

  void release(StringScope* scope) {
    const std::lock_guard lock(mutex_);
    for (const StringHandle handle : scope->handles_) {
      const auto found = strings_.find(handle);
      if (--found->second.scopes != 0) continue;
      bytes_ -= bytesOf(found->second.text);
      handles_.erase(found->second.text);
      strings_.erase(found);
    }
  }

  std::optional<std::string_view> find(StringHandle handle, const StringScope& scope) const {
    if (handle == 0) return std::string_view("");
    const std::lock_guard lock(mutex_);
    if (!scope.handles_.contains(handle)) return std::nullopt;
    return strings_.find(handle)->second.text;
  }

  Result<std::string> read(StringHandle handle) const {
    if (handle == 0) return std::string();
    const std::lock_guard lock(mutex_);
    const auto found = strings_.find(handle);
    if (found == strings_.end()) return unknown(handle);
    return found->second.text;
  }

 private:
  struct Entry {
    std::string text;
    uint64_t scopes;
  };

  static std::unexpected<Error> unknown(StringHandle handle) {
    return fail(ErrorCode::kNotFound, "No string has the handle {}.", handle);
  }
  // With what the maps need for it.
  static uint64_t bytesOf(std::string_view text) {
    constexpr uint64_t kOverhead = 160;
    return text.size() + kOverhead;
  }

  const uint64_t limit_ = machineMemory() / 2;
  mutable base::Mutex mutex_;
  std::unordered_map<StringHandle, Entry> strings_;
  // Views of the texts of strings_. Ordered: strings of strangers might all have one hash.
  std::map<std::string_view, StringHandle> handles_;
  StringHandle next_ = 1;
  uint64_t bytes_ = 0;
};

namespace {

constinit base::Immortal<StringHeap> heapOfProcess;
HEARTH_THREAD_LOCAL constinit StringScope* scopeOfThread = nullptr;

}  // namespace

StringHeap& StringHeap::ofProcess() {
  return heapOfProcess.get();
}

StringScope::~StringScope() {
  if (!handles_.empty()) StringHeap::ofProcess().release(this);
}

Result<StringHandle> StringScope::put(std::string_view text) {
  return StringHeap::ofProcess().put(text, this);
}

Status StringScope::keep(std::span<const StringHandle> handles) {
  return StringHeap::ofProcess().keep(handles, this);
}

std::optional<std::string_view> StringScope::find(StringHandle handle) const {
  return StringHeap::ofProcess().find(handle, *this);
}

Result<std::string> readString(StringHandle handle) {
  return StringHeap::ofProcess().read(handle);
}

Result<StringHandle> putString(std::string_view text) {
  if (scopeOfThread == nullptr)
    return fail(ErrorCode::kBadState, "Strings are computed in runs of an execution only.");
  return scopeOfThread->put(text);
}

StringScopeOfThread::StringScopeOfThread(StringScope* scope)
    : before_(std::exchange(scopeOfThread, scope)) {}

StringScopeOfThread::~StringScopeOfThread() {
  scopeOfThread = before_;
}

}  // namespace hearth::memory
