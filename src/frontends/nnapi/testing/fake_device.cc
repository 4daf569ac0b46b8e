// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/testing/fake_device.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "drivers/reference/reference_device.h"
#include "hal/fenced_thread.h"

namespace hearth::nnapi {

// A driver's own memory; the tests' tensors are small.
struct FakeStorage {
  static constexpr size_t kSize = 1 << 16;
  uint32_t token = 0;
  memory::PoolRef pool;
  graph::Dimensions dimensions;
};

namespace {

constexpr std::string_view kCacheContent = "what the fake device caches";

class FakeBuffer final : public hal::Buffer {
 public:
  explicit FakeBuffer(std::shared_ptr<FakeStorage> storage) : storage_(std::move(storage)) {}
  uint32_t token() const override { return storage_->token; }
  Status copyTo(const memory::PoolRef& destination) override {
    std::memcpy(destination->mutableData(), storage_->pool->data(),
                std::min(destination->size(), storage_->pool->size()));
    return {};
  }
  Status copyFrom(const memory::PoolRef& source, const graph::Dimensions& dimensions) override {
    std::memcpy(storage_->pool->mutableData(), source->data(),
                std::min(source->size(), storage_->pool->size()));
    storage_->dimensions = dimensions;
    return {};
  }

 private:
  std::shared_ptr<FakeStorage> storage_;
};

class FakeExecution final : public hal::Execution {
 public:
  FakeExecution(FakeDevice* device, std::unique_ptr<hal::Execution> execution)
      : device_(device), execution_(std::move(execution)) {}
  ~FakeExecution() override { thread_.stop(); }
  Result<base::Descriptor> startFenced(std::vector<base::Descriptor> fences,
                                       const base::Deadline& deadline) override {
    ++device_->fencedStarts;
    return thread_.start(std::move(fences), deadline,
                         [this](const base::Deadline& end) { return compute(end); });
  }
  hal::ExecutionResult finishFenced() override { return thread_.finish(); }
  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    ++device_->computations;
    if (device_->options.computeError) {
      hal::ExecutionResult result;
      result.status = fail(*device_->options.computeError, "The fake device fails as told.");
      return result;
    }
    hal::ExecutionResult result = execution_->compute(deadline);
    if (device_->options.changeResult != nullptr) device_->options.changeResult(&result);
    return result;
  }

 private:
  FakeDevice* const device_;
  std::unique_ptr<hal::Execution> execution_;
  hal::FencedThread thread_;
};

class FakePrepared final : public hal::PreparedModel {
 public:
  FakePrepared(FakeDevice* device, std::shared_ptr<const graph::Model> model,
               std::shared_ptr<hal::PreparedModel> prepared)
      : device_(device), model_(std::move(model)), prepared_(std::move(prepared)) {}
  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override {
    if (device_->options.createError)
      return fail(*device_->options.createError, "The fake device fails as told.");
    const graph::Subgraph& main = model_->main();
    for (size_t i = 0; i < request.inputs.size(); ++i)
      HEARTH_TRY(resolve(main.operands[main.inputs[i]], &request.inputs[i]));
    for (size_t i = 0; i < request.outputs.size(); ++i)
      HEARTH_TRY(resolve(main.operands[main.outputs[i]], &request.outputs[i]));
    HEARTH_ASSIGN(auto execution, prepared_->createExecution(std::move(request)));
    return std::make_unique<FakeExecution>(device_, std::move(execution));
  }
  bool hasFences() const override { return device_->options.hasFences; }
  hal::StartReport startReport() const override { return prepared_->startReport(); }

 private:
  // Replaces a token by the memory behind it.
  Status resolve(const graph::Operand& operand, hal::Argument* argument) {
    if (argument->kind != hal::Argument::Kind::kBuffer) return {};
    const std::shared_ptr<FakeStorage> storage = device_->storage(argument->token);
    if (storage == nullptr)
      return fail(ErrorCode::kBadData, "The token {} is unknown.", argument->token);
    argument->kind = hal::Argument::Kind::kPool;
    argument->pool = storage->pool;
    graph::Operand sized = operand;
    if (!argument->dimensions.empty()) sized.dimensions = argument->dimensions;
    argument->length = FakeStorage::kSize;
    if (graph::isFullySpecified(sized)) {
      HEARTH_ASSIGN(argument->length, graph::byteSize(sized));
    }
    return {};
  }

  FakeDevice* const device_;
  const std::shared_ptr<const graph::Model> model_;
  const std::shared_ptr<hal::PreparedModel> prepared_;
};

}  // namespace

FakeDevice::FakeDevice(FakeDeviceOptions given)
    : options(std::move(given)), reference_(drivers::reference::createDevice()) {}

hal::Capabilities FakeDevice::capabilities() const {
  hal::Capabilities capabilities;
  for (const graph::OperandTypeInfo& info : graph::operandTypes())
    capabilities.operandPerformance[info.type] = options.performance;
  capabilities.relaxedFloat32 = options.relaxedPerformance.value_or(options.performance);
  capabilities.ifPerformance = options.performance;
  capabilities.whilePerformance = options.performance;
  return capabilities;
}

Result<std::vector<hal::OperationSupport>> FakeDevice::supportedOperations(
    const graph::Model& model) {
  ++questions;
  HEARTH_ASSIGN(auto support, reference_->supportedOperations(model));
  for (size_t i = 0; i < support.size(); ++i)
    if (!options.operations.empty() &&
        !options.operations.contains(model.main().operations[i].type))
      support[i] = {false, "", "The fake device does not want it."};
  return support;
}

Result<std::shared_ptr<hal::PreparedModel>> FakeDevice::prepareModel(
    std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& prepare,
    hal::Cache cache) {
  ++preparations;
  if (!cache.modelFiles.empty() || !cache.dataFiles.empty()) {
    ++cachedPreparations;
    for (const auto* files : {&cache.modelFiles, &cache.dataFiles})
      for (const base::Descriptor& file : *files)
        if (::pwrite(file.get(), kCacheContent.data(), kCacheContent.size(), 0) < 0)
          return fail(ErrorCode::kIo, "The fake device cannot write its cache file.");
    const std::lock_guard lock(mutex_);
    tokens_.push_back(cache.token);
    saved_[cache.token] = model;
  }
  if (options.prepareError) return fail(*options.prepareError, "The fake device fails as told.");
  HEARTH_ASSIGN(auto prepared, reference_->prepareModel(model, prepare, {}));
  return std::make_shared<FakePrepared>(this, std::move(model), std::move(prepared));
}

Result<hal::CacheFileCounts> FakeDevice::numberOfCacheFilesNeeded() const {
  if (options.cacheFilesError) return fail(*options.cacheFilesError, "The fake device is silent.");
  return options.cacheFiles;
}

Result<std::shared_ptr<hal::PreparedModel>> FakeDevice::prepareModelFromCache(
    const hal::PrepareOptions& prepare, hal::Cache cache) {
  ++preparationsFromCache;
  if (cache.modelFiles.size() != options.cacheFiles.model ||
      cache.dataFiles.size() != options.cacheFiles.data)
    return fail(ErrorCode::kBadData, "The fake device gets the wrong number of files.");
  for (const auto* files : {&cache.modelFiles, &cache.dataFiles})
    for (const base::Descriptor& file : *files) {
      std::string content(kCacheContent.size(), ' ');
      if (::pread(file.get(), content.data(), content.size(), 0) < 0 || content != kCacheContent)
        return fail(ErrorCode::kBadData, "The fake device's cache file is another's.");
    }
  if (options.fromCacheError) return fail(*options.fromCacheError, "The fake device has no cache.");
  std::shared_ptr<const graph::Model> model;
  {
    const std::lock_guard lock(mutex_);
    model = saved_[cache.token];
  }
  if (model == nullptr) return fail(ErrorCode::kBadData, "The token is unknown.");
  HEARTH_ASSIGN(auto prepared, reference_->prepareModel(model, prepare, {}));
  return std::make_shared<FakePrepared>(this, std::move(model), std::move(prepared));
}

std::vector<hal::CacheToken> FakeDevice::tokens() {
  const std::lock_guard lock(mutex_);
  return tokens_;
}

Result<std::unique_ptr<hal::Buffer>> FakeDevice::allocate(
    const hal::BufferDescription& description, const std::vector<hal::BufferRole>& roles) {
  if (!options.allocates) return hal::Device::allocate(description, roles);
  const bool isKnown = !description.dimensions.empty() &&
                       std::find(description.dimensions.begin(), description.dimensions.end(),
                                 0u) == description.dimensions.end();
  if (!isKnown && !options.allocatesUnknown)
    return fail(ErrorCode::kUnsupported, "The fake device wants to know the size.");
  ++allocations;
  auto storage = std::make_shared<FakeStorage>();
  HEARTH_ASSIGN(storage->pool, memory::Pool::anonymous(FakeStorage::kSize));
  const std::lock_guard lock(mutex_);
  storage->token = ++lastToken_;
  storages_[storage->token] = storage;
  return std::make_unique<FakeBuffer>(std::move(storage));
}

std::shared_ptr<FakeStorage> FakeDevice::storage(uint32_t token) {
  const std::lock_guard lock(mutex_);
  const auto it = storages_.find(token);
  return it == storages_.end() ? nullptr : it->second.lock();
}

}  // namespace hearth::nnapi
