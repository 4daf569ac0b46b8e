// SPDX-License-Identifier: Apache-2.0
#include "runtime/fallback_model.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "runtime/device_model.h"
#include "runtime/overwritten_inputs.h"

namespace hearth::runtime {

bool isWorthAnotherDevice(const Error& error, Attempt failed, bool isOwnMemory) {
  switch (error.code()) {
    case ErrorCode::kMissedDeadlineTransient:
    case ErrorCode::kMissedDeadlinePersistent:
      return false;
    case ErrorCode::kBadData:
    case ErrorCode::kUnexpectedNull:
      return failed != Attempt::kPreparation;
    case ErrorCode::kOutputInsufficientSize:
      return failed != Attempt::kExecution;
    case ErrorCode::kOutOfMemory:
      return !isOwnMemory;
    default:
      return true;
  }
}

namespace {

// When a device is left alone that is dead again and again: an execution that tries it first takes
// longer, and writes a warning. A single death does not count, since the next execution finds the
// device restarted. Thread-safe.
class Rest {
 public:
  bool isOver() const {
    return deaths_.load(std::memory_order_relaxed) < kFirstRest || now() >= end_.load();
  }
  void noteSuccess() {
    if (deaths_.load(std::memory_order_relaxed) != 0) deaths_.store(0);
  }
  // Returns for how many milliseconds the device is left alone now.
  int64_t noteFailure(const Error& error) {
    if (error.code() != ErrorCode::kDeadObject) {
      noteSuccess();
      return 0;
    }
    const unsigned deaths = deaths_.fetch_add(1) + 1;
    if (deaths < kFirstRest) return 0;
    const int64_t pause = kFirst << std::min(deaths - kFirstRest, kMostDoublings);
    end_.store(now() + pause);
    return pause;
  }

 private:
  static constexpr unsigned kFirstRest = 2;  // deaths
  static constexpr unsigned kMostDoublings = 4;
  static constexpr int64_t kFirst = 125;  // milliseconds; the longest is 2 s
  static int64_t now() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  std::atomic<unsigned> deaths_ = 0;  // one after the other
  std::atomic<int64_t> end_ = 0;
};

// Whether an argument lies in the memory of a device, where no other one reads or writes it.
bool isBoundToDevice(const hal::Request& request) {
  constexpr auto isBuffer = [](const hal::Argument& argument) {
    return argument.kind == hal::Argument::Kind::kBuffer;
  };
  return std::ranges::any_of(request.inputs, isBuffer) ||
         std::ranges::any_of(request.outputs, isBuffer);
}

class FallbackModel final : public hal::PreparedModel,
                            public std::enable_shared_from_this<FallbackModel> {
 public:
  FallbackModel(std::shared_ptr<hal::PreparedModel> prepared,
                std::shared_ptr<const graph::Model> model, std::shared_ptr<hal::Device> device,
                hal::PrepareOptions options, bool isOwnMemory)
      : prepared_(std::move(prepared)),
        model_(std::move(model)),
        device_(std::move(device)),
        options_(std::move(options)),
        isOwnMemory_(isOwnMemory) {
    // The deadline of the compilation means nothing to a preparation during some later execution.
    options_.deadline = base::Deadline();
  }

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override;
  hal::StartReport startReport() const override { return prepared_->startReport(); }
  hal::StartReport startReportSoFar() const override { return prepared_->startReportSoFar(); }

  bool isWorthAnotherDevice(const Error& error) const {
    return runtime::isWorthAnotherDevice(error, Attempt::kExecution, isOwnMemory_);
  }
  // Whether an execution is tried where the model was prepared.
  bool isFirstTried() const { return rest_.isOver(); }
  void noteSuccess() { rest_.noteSuccess(); }

  // Before an execution is computed again, if it can be.
  void noteFailure(const Error& reason, bool overwritesInputs = false) {
    const int64_t pause = rest_.noteFailure(reason);
    if (overwritesInputs)
      base::logWarn(
          "An execution fails, and {} cannot compute it again: its outputs lie over its "
          "inputs. {}",
          device_->name(), reason.toString());
    else if (pause == 0)
      base::logWarn("An execution is computed again on {}. {}", device_->name(), reason.toString());
    else
      base::logWarn("Executions are computed on {} for the next {} ms. {}", device_->name(), pause,
                    reason.toString());
  }

  Result<std::unique_ptr<hal::Execution>> createSecond(hal::Request request) {
    const std::lock_guard lock(mutex_);
    if (second_ == nullptr) {
      HEARTH_ASSIGN(auto prepared, device_->prepareModel(model_, options_, hal::Cache()));
      second_ = asDeviceModel(std::move(prepared), model_, device_->name());
    }
    return second_->createExecution(std::move(request));
  }

 private:
  const std::shared_ptr<hal::PreparedModel> prepared_;
  const std::shared_ptr<const graph::Model> model_;
  const std::shared_ptr<hal::Device> device_;
  hal::PrepareOptions options_;
  const bool isOwnMemory_;
  Rest rest_;
  base::Mutex mutex_;
  std::shared_ptr<hal::PreparedModel> second_;
};

class FallbackExecution final : public hal::Execution {
 public:
  FallbackExecution(std::shared_ptr<FallbackModel> model, std::unique_ptr<hal::Execution> first,
                    hal::Request request, bool overwritesInputs)
      : model_(std::move(model)),
        first_(std::move(first)),
        request_(std::move(request)),
        overwritesInputs_(overwritesInputs) {}

  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    if (!model_->isFirstTried() && makeSecond()) return second_->compute(deadline);
    hal::ExecutionResult result = first_->compute(deadline);
    if (result.status) model_->noteSuccess();
    if (result.status || !model_->isWorthAnotherDevice(result.status.error())) return result;
    // The inputs may be gone. To copy them before each computation would cost a language model with
    // states in place its caches at each token.
    model_->noteFailure(result.status.error(), overwritesInputs_);
    if (overwritesInputs_) return result;
    // The first failure says more about the model than the failure of the fallback.
    if (!makeSecond()) return result;
    return second_->compute(deadline);
  }

  bool makeSecond() {
    if (second_ != nullptr) return true;
    if (auto made = model_->createSecond(request_)) second_ = *std::move(made);
    return second_ != nullptr;
  }

  std::shared_ptr<FallbackModel> model_;
  std::unique_ptr<hal::Execution> first_;
  // Of the other device, kept from the first failure on: making one takes longer than many runs.
  std::unique_ptr<hal::Execution> second_;
  hal::Request request_;
  const bool overwritesInputs_;
};

Result<std::unique_ptr<hal::Execution>> FallbackModel::createExecution(hal::Request request) {
  if (isBoundToDevice(request)) return prepared_->createExecution(std::move(request));
  if (!isFirstTried())
    if (auto second = createSecond(request)) return second;
  auto first = prepared_->createExecution(request);
  if (first) {
    HEARTH_ASSIGN(const bool overwrites, overwritesInputs(request));
    return std::make_unique<FallbackExecution>(shared_from_this(), std::move(*first),
                                               std::move(request), overwrites);
  }
  if (!isWorthAnotherDevice(first.error())) return std::unexpected(std::move(first.error()));
  noteFailure(first.error());
  auto second = createSecond(std::move(request));
  if (!second) return std::unexpected(std::move(first.error()));
  return second;
}

}  // namespace

std::shared_ptr<hal::PreparedModel> withFallback(std::shared_ptr<hal::PreparedModel> prepared,
                                                 std::shared_ptr<const graph::Model> model,
                                                 std::shared_ptr<hal::Device> device,
                                                 hal::PrepareOptions options, bool isOwnMemory) {
  return std::make_shared<FallbackModel>(std::move(prepared), std::move(model), std::move(device),
                                         std::move(options), isOwnMemory);
}

}  // namespace hearth::runtime
