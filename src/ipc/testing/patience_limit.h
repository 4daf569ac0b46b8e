// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace hearth::ipc {

// Another value of one of the limits of patience.h as long as it exists.
class PatienceLimit {
 public:
  PatienceLimit(std::atomic<int64_t>& limit, int64_t nanoseconds)
      : limit_(limit), before_(limit.exchange(nanoseconds)) {}
  ~PatienceLimit() { limit_ = before_; }
  PatienceLimit(const PatienceLimit&) = delete;
  PatienceLimit& operator=(const PatienceLimit&) = delete;

 private:
  std::atomic<int64_t>& limit_;
  const int64_t before_;
};

}  // namespace hearth::ipc
