// SPDX-License-Identifier: Apache-2.0
#include "ipc/testing/fake_device.h"

#include <pthread.h>

#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "graph/model.h"
#include "hal/fenced_thread.h"
#include "hal/progress.h"
#include "memory/budget.h"

namespace hearth::ipc {
namespace {

// Memory of one argument; keeps what it lies in.
struct Bytes {
  uint8_t* data = nullptr;
  uint64_t size = 0;
  std::shared_ptr<const void> owner;
};

class FakeExecution final : public hal::Execution {
 public:
  FakeExecution(std::shared_ptr<FakeDevice> device, std::vector<Bytes> inputs, Bytes output,
                graph::Dimensions dimensions)
      : device_(std::move(device)),
        inputs_(std::move(inputs)),
        output_(std::move(output)),
        dimensions_(std::move(dimensions)) {
    ++device_->executions;
  }
  ~FakeExecution() override {
    thread_.stop();
    --device_->executions;
  }

  Result<base::Descriptor> startFenced(std::vector<base::Descriptor> fences,
                                       const base::Deadline& deadline) override {
    return thread_.start(std::move(fences), deadline,
                         [this](const base::Deadline& end) { return compute(end); });
  }
  hal::ExecutionResult finishFenced() override { return thread_.finish(); }

  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    device_->computationBegins();
    hal::ExecutionResult result;
    if (deadline.hasPassed() && !device_->ignoresDeadlines) {
      result.status = fail(ErrorCode::kMissedDeadlinePersistent, "The deadline has passed.");
      return result;
    }
    for (size_t i = 0; i + sizeof(float) <= output_.size; i += sizeof(float)) {
      float a;
      float b;
      std::memcpy(&a, inputs_[0].data + i, sizeof a);
      std::memcpy(&b, inputs_[1].data + i, sizeof b);
      a += b;
      std::memcpy(output_.data + i, &a, sizeof a);
    }
    result.outputShapes = {{dimensions_, true}};
    result.timing = {1000, 2000};
    return device_->answer(std::move(result));
  }

 private:
  const std::shared_ptr<FakeDevice> device_;
  const std::vector<Bytes> inputs_;
  const Bytes output_;
  const graph::Dimensions dimensions_;
  hal::FencedThread thread_;
};

class FakeModel final : public hal::PreparedModel {
 public:
  FakeModel(std::shared_ptr<FakeDevice> device, std::shared_ptr<const graph::Model> model)
      : device_(std::move(device)), model_(std::move(model)) {
    ++device_->prepared;
  }
  ~FakeModel() override { --device_->prepared; }

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override {
    if (request.inputs.size() != 2 || request.outputs.size() != 1)
      return fail(ErrorCode::kBadData, "The request has {} inputs.", request.inputs.size());
    std::vector<Bytes> bytes;
    for (auto* const list : {&request.inputs, &request.outputs})
      for (const hal::Argument& argument : *list) {
        HEARTH_ASSIGN(Bytes resolved, resolve(argument));
        bytes.push_back(std::move(resolved));
      }
    Bytes output = std::move(bytes.back());
    bytes.pop_back();
    for (const Bytes& input : bytes)
      if (input.size < output.size)
        return fail(ErrorCode::kBadData, "An input has {} bytes.", input.size);
    return std::make_unique<FakeExecution>(
        device_, std::move(bytes), std::move(output),
        model_->main().operands[model_->main().outputs[0]].dimensions);
  }
  bool hasFences() const override { return true; }
  hal::StartReport startReport() const override {
    hal::StartReport report;
    report.state = hal::StartReport::State::kWarm;
    report.packedBytes["ADD"] = 5;
    report.routedAround = {"avx"};
    report.slowOperations = {"ADD 0 (TENSOR_FLOAT16): it is a test"};
    report.tuning = {hal::TuningReport::State::kMeasured, 7, 1, 11, 10};
    report.cacheProblem = "No file was written.";
    report.shapes = 3;
    return report;
  }

 private:
  Result<Bytes> resolve(const hal::Argument& argument) const {
    switch (argument.kind) {
      case hal::Argument::Kind::kPointer:
        if (argument.pointer == nullptr) break;
        return Bytes{static_cast<uint8_t*>(argument.pointer), argument.length, nullptr};
      case hal::Argument::Kind::kPool:
        if (argument.pool == nullptr || !argument.pool->contains(argument.offset, argument.length))
          break;
        return Bytes{const_cast<uint8_t*>(argument.pool->data()) + argument.offset, argument.length,
                     argument.pool};
      case hal::Argument::Kind::kBuffer:
        if (auto buffer = device_->bufferBytes(argument.token))
          return Bytes{buffer->data(), buffer->size(), buffer};
        break;
      case hal::Argument::Kind::kNoValue:
        break;
    }
    return fail(ErrorCode::kBadData, "An argument cannot be used.");
  }

  const std::shared_ptr<FakeDevice> device_;
  const std::shared_ptr<const graph::Model> model_;
};

}  // namespace

class FakeBuffer final : public hal::Buffer {
 public:
  FakeBuffer(std::shared_ptr<FakeDevice> device, uint32_t token, std::shared_ptr<void> room)
      : device_(std::move(device)), token_(token), room_(std::move(room)) {}
  ~FakeBuffer() override {
    const std::lock_guard lock(device_->mutex_);
    device_->buffers_.erase(token_);
  }

  uint32_t token() const override { return token_; }
  Status copyTo(const memory::PoolRef& destination) override {
    const auto bytes = device_->bufferBytes(token_);
    if (destination->size() != bytes->size())
      return fail(ErrorCode::kBadData, "The memory has {} bytes.", destination->size());
    std::memcpy(destination->mutableData(), bytes->data(), bytes->size());
    return {};
  }
  Status copyFrom(const memory::PoolRef& source, const graph::Dimensions& /*dimensions*/) override {
    const auto bytes = device_->bufferBytes(token_);
    if (source->size() != bytes->size())
      return fail(ErrorCode::kBadData, "The memory has {} bytes.", source->size());
    std::memcpy(bytes->data(), source->data(), bytes->size());
    return {};
  }

 private:
  const std::shared_ptr<FakeDevice> device_;
  const uint32_t token_;
  const std::shared_ptr<void> room_;
};

hal::Capabilities FakeDevice::capabilities() const {
  hal::Capabilities capabilities;
  capabilities.operandPerformance[graph::OperandType::kTensorFloat32] = {0.5f, 0.25f};
  capabilities.whilePerformance = {3.0f, 4.0f};
  return capabilities;
}

Result<std::vector<hal::OperationSupport>> FakeDevice::supportedOperations(
    const graph::Model& model) {
  std::vector<hal::OperationSupport> support;
  for (const graph::Operation& operation : model.main().operations) {
    const bool isAdd = operation.type == graph::OperationType::kAdd;
    support.push_back({isAdd, isAdd ? "own" : "", isAdd ? "" : "It only adds."});
  }
  return support;
}

Result<std::shared_ptr<hal::PreparedModel>> FakeDevice::prepareModel(
    std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
    hal::Cache cache) {
  HEARTH_TRY(graph::validate(*model));
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !arePreparationsHeld_; });
  lastOptions = options;
  lastToken = cache.token;
  lastFiles.clear();
  for (const auto* const files : {&cache.modelFiles, &cache.dataFiles})
    for (const base::Descriptor& file : *files) lastFiles.push_back(file.valid());
  return std::make_shared<FakeModel>(shared_from_this(), std::move(model));
}

Result<std::unique_ptr<hal::Buffer>> FakeDevice::allocate(
    const hal::BufferDescription& description, const std::vector<hal::BufferRole>& roles) {
  if (roles.empty()) return fail(ErrorCode::kBadData, "The buffer has no role.");
  size_t size = sizeof(float);
  for (const uint32_t dimension : description.dimensions) size *= dimension;
  if (size > (size_t{1} << 20)) return fail(ErrorCode::kOutOfMemory, "There is not so much.");
  HEARTH_ASSIGN(std::shared_ptr<void> room, memory::reserveRoom(size));
  const std::lock_guard lock(mutex_);
  buffers_[++lastBuffer_] = std::make_shared<std::vector<uint8_t>>(size);
  return std::make_unique<FakeBuffer>(shared_from_this(), lastBuffer_, std::move(room));
}

void FakeDevice::hold() {
  const std::lock_guard lock(mutex_);
  isHeld_ = true;
}

void FakeDevice::holdPreparations() {
  const std::lock_guard lock(mutex_);
  arePreparationsHeld_ = true;
}

void FakeDevice::letGo() {
  const std::lock_guard lock(mutex_);
  isHeld_ = false;
  arePreparationsHeld_ = false;
  changed_.notify_all();
}

void FakeDevice::waitForComputations(int count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return begun_ >= count; });
}

void FakeDevice::computationBegins() {
  std::unique_lock lock(mutex_);
  ++begun_;
  std::array<char, 16> name{};
  ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  threadName_ = name.data();
  changed_.notify_all();
  hal::Progress* const progress = hal::progressOfThread();
  while (isHeld_) {
    if (tellsProgress && progress != nullptr) progress->begins(0, 1);
    changed_.wait_for(lock, std::chrono::milliseconds(10));
  }
}

void FakeDevice::answerWith(std::optional<hal::ExecutionResult> result) {
  const std::lock_guard lock(mutex_);
  answer_ = std::move(result);
}

hal::ExecutionResult FakeDevice::answer(hal::ExecutionResult own) const {
  const std::lock_guard lock(mutex_);
  return answer_ ? *answer_ : own;
}

std::string FakeDevice::threadName() const {
  const std::lock_guard lock(mutex_);
  return threadName_;
}

std::shared_ptr<std::vector<uint8_t>> FakeDevice::bufferBytes(uint32_t token) {
  const std::lock_guard lock(mutex_);
  const auto found = buffers_.find(token);
  return found == buffers_.end() ? nullptr : found->second;
}

}  // namespace hearth::ipc
