// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace hearth::drivers::delegate {

// Ends this process if it lives longer than the limit: code of a vendor that does not return cannot
// be stopped in another way, and a client that asks what a device supports has no deadline.
class CallLimit {
 public:
  // `library` is for the log; a limit of 0 is none.
  CallLimit(const std::string& library, std::chrono::seconds limit);
  ~CallLimit();
  CallLimit(const CallLimit&) = delete;
  CallLimit& operator=(const CallLimit&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool isOver_ = false;
  std::thread thread_;
};

}  // namespace hearth::drivers::delegate
