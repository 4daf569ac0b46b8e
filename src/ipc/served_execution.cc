// SPDX-License-Identifier: Apache-2.0
#include "ipc/served_execution.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/caught.h"
#include "hal/request_check.h"
#include "ipc/output_bytes.h"
#include "ipc/patience.h"

namespace hearth::ipc {
namespace {

constexpr uint64_t kAlignment = 64;

bool isInMemory(const hal::Argument& argument) {
  return argument.kind == hal::Argument::Kind::kPool && argument.pool != nullptr;
}

bool areSame(const hal::OutputShapes& left, const hal::OutputShapes& right) {
  if (left.isCopyOf(right)) return true;
  return std::ranges::equal(left, right, [](const auto& one, const auto& other) {
    return one.dimensions == other.dimensions && one.isSufficient == other.isSufficient;
  });
}

}  // namespace

Status ServedExecution::copyArguments(hal::Request* request, ClientMemories* memories) {
  uint64_t size = kAlignment;
  for (auto* const arguments : {&request->inputs, &request->outputs})
    for (const hal::Argument& argument : *arguments) {
      if (!isInMemory(argument)) continue;
      HEARTH_TRY(hal::addressOf(argument, arguments == &request->inputs));
      // The range lies in a file, so its length is far below 2^63.
      const uint64_t room = (argument.length + kAlignment - 1) / kAlignment * kAlignment;
      if (room > UINT64_MAX - size)
        return fail(ErrorCode::kBadData, "The arguments of a request have more than 2^64 bytes.");
      size += room;
    }
  HEARTH_ASSIGN(std::shared_ptr<void> room, memories->reserve(size));
  kept_.push_back(std::move(room));
  HEARTH_ASSIGN(own_, memory::Mapping::anonymous(static_cast<size_t>(size)));
  uint8_t* next = own_.data();
  for (auto* const arguments : {&request->inputs, &request->outputs})
    for (size_t i = 0; i < arguments->size(); ++i) {
      hal::Argument& argument = (*arguments)[i];
      if (!isInMemory(argument)) continue;
      auto& copied = arguments == &request->inputs ? copiedInputs_ : copiedOutputs_;
      HEARTH_ASSIGN(uint8_t* const client, hal::addressOf(argument, arguments == &request->inputs));
      copied.push_back({i, next, client, argument.length});
      argument.kind = hal::Argument::Kind::kPointer;
      argument.pointer = next;
      argument.pool = nullptr;
      next += (argument.length + kAlignment - 1) / kAlignment * kAlignment;
    }
  return {};
}

Status ServedExecution::bind(hal::PreparedModel& model, hal::Request request,
                             std::vector<memory::PoolRef> memories) {
  memories_ = std::move(memories);
  const memory::BudgetScope scope(memory_.get());
  auto execution = model.createExecution(std::move(request));
  if (!execution) {
    noteDeath(execution.error());
    return std::unexpected(std::move(execution.error()));
  }
  execution_ = *std::move(execution);
  if (execution_ == nullptr) return fail(ErrorCode::kOpFailed, "The driver gives no execution.");
  return {};
}

void ServedExecution::copyIn() const {
  for (const Copied& input : copiedInputs_)
    if (input.length != 0) std::memcpy(input.own, input.client, input.length);
  // Where it is not known how many bytes a computation writes, the others stay as they were.
  if (!outputs_.empty()) return;
  for (const Copied& output : copiedOutputs_)
    if (output.length != 0) std::memcpy(output.own, output.client, output.length);
}

void ServedExecution::copyOut(const hal::ExecutionResult& result) const {
  for (const Copied& output : copiedOutputs_) {
    uint64_t length = output.length;
    if (!outputs_.empty()) {
      std::optional<uint64_t> bytes;
      if (output.index < outputs_.size() && output.index < result.outputShapes.size())
        bytes = outputBytes(outputs_[output.index], result.outputShapes[output.index].dimensions);
      length = std::min(length, bytes.value_or(0));
    }
    if (length != 0) std::memcpy(output.client, output.own, length);
  }
}

hal::ExecutionResult ServedExecution::computeLocked(const base::Deadline& deadline) {
  hal::ExecutionResult result;
  if (fence_.valid()) {
    result.status = fail(ErrorCode::kBadState, "The execution is being computed with fences.");
    return result;
  }
  FairShare::Turn turn;
  if (turns_.client != nullptr) {
    auto taken = turns_.client->take(turns_.priority, deadline);
    if (!taken) {
      result.status = std::unexpected(std::move(taken.error()));
      return result;
    }
    turn = std::move(*taken);
  }
  copyIn();
  {
    const memory::BudgetScope scope(memory_.get());
    result = execution_->compute(deadline);
  }
  if (result.status && !copiedOutputs_.empty() && isTooLate(deadline)) {
    result.status = fail(ErrorCode::kMissedDeadlineTransient,
                         "The computation has ended long after its deadline.");
    result.outputShapes.clear();
  }
  if (result.status) copyOut(result);
  check(result);
  return result;
}

void ServedExecution::noteDeath(const Error& error) const {
  if (error.code() == ErrorCode::kDeadObject) onDeath_();
}

void ServedExecution::check(hal::ExecutionResult& result) const {
  if (!result.status) noteDeath(result.status.error());
  if (Status whole = hal::checkMemoriesWhole(memories_); !whole) {
    result.status = std::move(whole);
    result.outputShapes.clear();
  }
}

hal::ExecutionResult ServedExecution::compute(const base::Deadline& deadline) {
  const std::unique_lock lock(turn_, std::try_to_lock);
  if (!lock.owns_lock()) {
    hal::ExecutionResult result;
    result.status = fail(ErrorCode::kBadState, "The execution is being computed already.");
    return result;
  }
  hal::ExecutionResult result = computeLocked(deadline);
  tell(result);
  return result;
}

ExecutionAnswer ServedExecution::computeInMailbox(const base::Deadline& deadline) {
  const std::lock_guard lock(turn_);
  hal::ExecutionResult result;
  auto computed =
      base::caught([&]() -> Result<hal::ExecutionResult> { return computeLocked(deadline); });
  if (computed)
    result = std::move(*computed);
  else
    result.status = std::unexpected(std::move(computed.error()));
  ExecutionAnswer answer{.isPlain = result.status && areSame(result.outputShapes, toldShapes_),
                         .timing = result.timing,
                         .copiedBytes = result.copiedBytes};
  unfetched_.reset();
  if (!answer.isPlain) unfetched_ = std::make_unique<hal::ExecutionResult>(std::move(result));
  return answer;
}

Result<hal::ExecutionResult> ServedExecution::fetchResult() {
  const std::unique_lock lock(turn_, std::try_to_lock);
  if (!lock.owns_lock() || unfetched_ == nullptr)
    return fail(ErrorCode::kBadState, "There is no result to be fetched.");
  hal::ExecutionResult result = std::move(*unfetched_);
  unfetched_.reset();
  tell(result);
  return result;
}

Result<base::Descriptor> ServedExecution::startFenced(std::vector<base::Descriptor> fences,
                                                      const base::Deadline& deadline,
                                                      std::shared_ptr<void> held) {
  const std::unique_lock lock(turn_, std::try_to_lock);
  if (!lock.owns_lock() || fence_.valid())
    return fail(ErrorCode::kBadState, "The execution is being computed already.");
  if (!copiedInputs_.empty() || !copiedOutputs_.empty())
    return fail(ErrorCode::kUnsupported,
                "The host copies arguments, so it has to compute at once.");
  const memory::BudgetScope scope(memory_.get());
  auto fence = execution_->startFenced(std::move(fences), deadline);
  if (!fence) {
    noteDeath(fence.error());
    return fence;
  }
  if (!fence->valid()) return fail(ErrorCode::kOpFailed, "The driver gives no fence.");
  auto own = fence->duplicate();
  if (!own) {
    static_cast<void>(execution_->finishFenced());
    return own;
  }
  fence_ = *std::move(fence);
  heldForFences_ = std::move(held);
  return own;
}

hal::ExecutionResult ServedExecution::finishFenced() {
  hal::ExecutionResult result;
  const std::unique_lock lock(turn_, std::try_to_lock);
  pollfd ended{fence_.get(), POLLIN, 0};
  if (!lock.owns_lock() || !fence_.valid() || ::poll(&ended, 1, 0) != 1) {
    result.status = fail(ErrorCode::kBadState, "No fenced execution has ended.");
    return result;
  }
  fence_.reset();
  result = execution_->finishFenced();
  check(result);
  heldForFences_.reset();
  tell(result);
  return result;
}

void ServedExecution::tell(const hal::ExecutionResult& result) {
  if (result.status) toldShapes_ = result.outputShapes;
}

}  // namespace hearth::ipc
