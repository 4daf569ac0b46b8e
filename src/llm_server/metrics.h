// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::llm_server {

// What a server has done, for Prometheus. Thread-safe.
class Metrics {
 public:
  // Of one answer.
  struct Answer {
    size_t promptTokens = 0;
    size_t reusedTokens = 0;  // of the prompt, that a session had computed
    size_t storedTokens = 0;  // and that the store of prefixes had
    size_t tokens = 0;
    std::chrono::nanoseconds firstToken{};  // from the arrival of the request
    std::chrono::nanoseconds computing{};
  };

  void countReply(int status);
  void countAnswer(const std::string& model, const Answer& answer);
  // An answer whose client went away before its end.
  void countAbandoned() { ++abandoned_; }

  // A figure that others keep, at this moment.
  struct Figure {
    std::string_view name;  // without "hearth_"
    std::string_view type;  // counter or gauge
    std::string_view help;
    uint64_t value = 0;
  };
  // All of it in the text format of Prometheus, version 0.0.4.
  std::string toText(const std::vector<Figure>& figures) const;

 private:
  static constexpr std::array kFirstTokenSeconds = {0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0};

  struct Tokens {
    uint64_t computed = 0;
    uint64_t reused = 0;
    uint64_t stored = 0;
    uint64_t generated = 0;
  };

  mutable std::mutex mutex_;
  std::map<int, uint64_t> replies_;       // by status
  std::map<std::string, Tokens> tokens_;  // by model
  std::array<uint64_t, kFirstTokenSeconds.size()> firstTokens_{};
  uint64_t answers_ = 0;
  double firstTokenSeconds_ = 0;
  double computingSeconds_ = 0;
  std::atomic<uint64_t> abandoned_ = 0;
};

}  // namespace hearth::llm_server
