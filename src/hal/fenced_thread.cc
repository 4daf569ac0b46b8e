// SPDX-License-Identifier: Apache-2.0
#include "hal/fenced_thread.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <memory>
#include <optional>
#include <utility>

#include "base/caught.h"
#include "base/fence_order.h"
#include "base/helper_thread.h"
#include "memory/budget.h"

namespace hearth::hal {
namespace {

// How long poll() is to wait for, rounded up.
int millisecondsUntil(const base::Deadline& deadline) {
  if (deadline.isNever()) return -1;
  const auto rest =
      std::chrono::ceil<std::chrono::milliseconds>(deadline.when() - base::Deadline::Clock::now());
  return static_cast<int>(std::clamp<int64_t>(rest.count(), 0, INT_MAX));
}

// kOpFailed for a fence that reports an error, and when `cancel` becomes readable;
// kMissedDeadlineTransient when the deadline passes.
Status waitForFences(const std::vector<base::Descriptor>& fences, const base::Descriptor& cancel,
                     const base::Deadline& deadline) {
  std::vector<pollfd> open;
  for (const base::Descriptor& fence : fences) open.push_back({fence.get(), POLLIN, 0});
  open.push_back({cancel.get(), POLLIN, 0});
  while (open.size() > 1) {
    const int count = ::poll(open.data(), open.size(), millisecondsUntil(deadline));
    if (count < 0 && errno != EINTR)
      return std::unexpected(base::errnoError(errno, "Waiting for fences"));
    if (count > 0) {
      if (open.back().revents != 0)
        return fail(ErrorCode::kOpFailed, "The computation was given up while it waited.");
      const auto isWrong = [](const pollfd& fence) {
        return (fence.revents & (POLLERR | POLLNVAL)) != 0;
      };
      if (std::ranges::any_of(open, isWrong))
        return fail(ErrorCode::kOpFailed, "A fence that is waited for reports an error.");
      std::erase_if(open, [](const pollfd& fence) { return fence.revents != 0; });
    }
    if (open.size() > 1 && deadline.hasPassed())
      return fail(ErrorCode::kMissedDeadlineTransient,
                  "The deadline has passed before the fences that are waited for.");
  }
  base::afterFindingFenceSignalled();
  return {};
}

}  // namespace

Result<base::Descriptor> FencedThread::start(std::vector<base::Descriptor> fences,
                                             const base::Deadline& deadline, Compute compute) {
  if (thread_.joinable())
    return fail(ErrorCode::kBadState, "A fenced execution has been started and not finished.");
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    return std::unexpected(base::errnoError(errno, "Making a fence"));
  base::Descriptor fence(ends[0]);
  // Functions have to be copyable.
  const auto signal = std::make_shared<base::Descriptor>(ends[1]);
  cancel_.reset(::eventfd(0, EFD_CLOEXEC));
  if (!cancel_.valid()) return std::unexpected(base::errnoError(errno, "Making a fence"));
  // Without a reader the write would raise SIGPIPE.
  HEARTH_ASSIGN(reader_, fence.duplicate());
  const auto waits = std::make_shared<std::vector<base::Descriptor>>(std::move(fences));
  thread_ = base::startHelperThread(
      "hearth-fenced",
      [this, signal, waits, deadline, compute = std::move(compute),
       budget = memory::budgetOfThread()] {
        auto computed = base::caught([&]() -> Result<ExecutionResult> {
          HEARTH_TRY(waitForFences(*waits, cancel_, deadline));
          const memory::BudgetScope scope(budget);
          return compute(deadline);
        });
        if (computed) {
          result_ = *std::move(computed);
        } else {
          result_ = {};
          result_.status = std::unexpected(std::move(computed.error()));
        }
        base::beforeSignallingFence();
        // A reader that does not look for POLLIN sees the end of the pipe.
        const uint8_t byte = 1;
        static_cast<void>(::write(signal->get(), &byte, sizeof byte));
      },
      base::Processors::kOfProcess);
  if (!thread_.joinable())
    return fail(ErrorCode::kResourceExhaustedTransient,
                "No thread can be started for a fenced execution.");
  return fence;
}

ExecutionResult FencedThread::finish() {
  if (!thread_.joinable()) {
    ExecutionResult result;
    result.status = fail(ErrorCode::kBadState, "No fenced execution has been started.");
    return result;
  }
  thread_.join();
  return std::exchange(result_, {});
}

void FencedThread::stop() {
  if (!thread_.joinable()) return;
  ::eventfd_write(cancel_.get(), 1);
  thread_.join();
}

}  // namespace hearth::hal
