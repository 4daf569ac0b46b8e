// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "base/descriptor.h"

namespace hearth::llm_server {

// Tells a thread that polls which connections have something to send. Thread-safe.
class Wakeup {
 public:
  // An eventfd.
  explicit Wakeup(base::Descriptor event) : event_(std::move(event)) {}

  int descriptor() const { return event_.get(); }
  void add(uint64_t id);
  // Those that were added since the last call.
  std::vector<uint64_t> take();

 private:
  const base::Descriptor event_;
  std::mutex mutex_;
  std::vector<uint64_t> ids_;
};

}  // namespace hearth::llm_server
