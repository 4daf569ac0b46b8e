// SPDX-License-Identifier: Apache-2.0
#include "runtime/fallback_model.h"

#include <mutex>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "runtime/device_model.h"

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

  Result<std::unique_ptr<hal::Execution>> createSecond(hal::Request request, const Error& reason) {
    base::logWarn("An execution is computed again on {}. {}", device_->name(), reason.toString());
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
  base::Mutex mutex_;
  std::shared_ptr<hal::PreparedModel> second_;
};

class FallbackExecution final : public hal::Execution {
 public:
  FallbackExecution(std::shared_ptr<FallbackModel> model, std::unique_ptr<hal::Execution> first,
                    hal::Request request)
      : model_(std::move(model)), first_(std::move(first)), request_(std::move(request)) {}

  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    hal::ExecutionResult result = first_->compute(deadline);
    if (result.status || !model_->isWorthAnotherDevice(result.status.error())) return result;
    auto second = model_->createSecond(request_, result.status.error());
    // The first failure says more about the model than the failure of the fallback.
    if (!second) return result;
    return (*second)->compute(deadline);
  }

 private:
  std::shared_ptr<FallbackModel> model_;
  std::unique_ptr<hal::Execution> first_;
  hal::Request request_;
};

Result<std::unique_ptr<hal::Execution>> FallbackModel::createExecution(hal::Request request) {
  auto first = prepared_->createExecution(request);
  if (first)
    return std::make_unique<FallbackExecution>(shared_from_this(), std::move(*first),
                                               std::move(request));
  if (!isWorthAnotherDevice(first.error())) return std::unexpected(std::move(first.error()));
  auto second = createSecond(std::move(request), first.error());
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
