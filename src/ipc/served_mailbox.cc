// SPDX-License-Identifier: Apache-2.0
#include "ipc/served_mailbox.h"

#include <chrono>
#include <thread>

#include "ipc/end_forecast.h"
#include "ipc/execution_words.h"

namespace hearth::ipc {
namespace {

// The client spins through waits that are shorter than this computation and its way there and back,
// so the clock is not read for it.
constexpr uint64_t kShortestTold = std::chrono::nanoseconds(EndForecast::kShortest / 2).count();

// Counts threads as long as it exists.
class Counted {
 public:
  Counted(std::atomic<uint32_t>& sum, uint32_t threads) : sum_(sum), threads_(threads) {
    sum_.fetch_add(threads_, std::memory_order_relaxed);
  }
  ~Counted() { sum_.fetch_sub(threads_, std::memory_order_relaxed); }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::atomic<uint32_t>& sum_;
  const uint32_t threads_;
};

}  // namespace

void ServedMailbox::serve() {
  processors_ = std::thread::hardware_concurrency();
  const uint32_t threads = execution_->threads();
  const hal::ProgressScope told(this);
  while (true) {
    const auto request = server_.receive();
    if (!request) return;
    ExecutionAnswer answer;
    bool hasRoom = false;
    {
      const Counted counted(computing_, threads);
      hasRoom = hasProcessor();
      if (hasRoom && bell_.isRight()) server_.leaveClient();
      answer = execution_->computeInMailbox(deadlineOf(*request));
    }
    server_.answer(answer.words(), hasRoom && answer.timing.inDriver >= kShortestTold);
    bell_.end(std::chrono::nanoseconds(static_cast<int64_t>(answer.timing.inDriver)),
              bell_.wasReached() ? EarlyBell::Clock::now() : EarlyBell::Clock::time_point());
  }
}

void ServedMailbox::begins(size_t step, size_t steps) {
  told_.begins(step, steps);
  if (!bell_.isAt(step, steps) || !bell_.reach(EarlyBell::Clock::now())) return;
  if (bell_.isRight() && hasProcessor()) server_.announce();
}

bool ServedMailbox::hasProcessor() const {
  // Where no processor is left, the client would take time from those that compute.
  return computing_.load(std::memory_order_relaxed) < processors_;
}

}  // namespace hearth::ipc
