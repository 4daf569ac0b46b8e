// SPDX-License-Identifier: Apache-2.0
// For tests: a device that computes like the reference, with chosen operations, costs and failures.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hal/device.h"

namespace hearth::nnapi {

struct FakeDeviceOptions {
  std::string name;
  std::set<graph::OperationType> operations;  // empty: all
  hal::PerformanceInfo performance{1.0f, 1.0f};
  std::optional<hal::PerformanceInfo> relaxedPerformance;
  std::optional<ErrorCode> prepareError;
  std::optional<ErrorCode> createError;  // of executions
  std::optional<ErrorCode> computeError;
  std::function<void(hal::ExecutionResult*)> changeResult;  // falsifies results
  // Caching: how many files the device wants (or the error of that question), and the error of a
  // preparation from the cache.
  hal::CacheFileCounts cacheFiles;
  std::optional<ErrorCode> cacheFilesError;
  std::optional<ErrorCode> fromCacheError;
  std::string version = "fake";
  std::vector<std::string> extensions;
  hal::DeviceType type = hal::DeviceType::kAccelerator;
  // Memory domains: whether allocate() works, and whether also for unknown dimensions.
  bool allocates = false;
  bool allocatesUnknown = false;
  bool hasFences = false;  // whether executions have the fenced form
};

// Thread-safe except for the options, which tests change between uses.
class FakeDevice final : public hal::Device {
 public:
  explicit FakeDevice(FakeDeviceOptions options);

  FakeDeviceOptions options;
  std::atomic<int> questions = 0;  // calls of supportedOperations()
  std::atomic<int> preparations = 0;
  std::atomic<int> computations = 0;
  std::atomic<int> fencedStarts = 0;
  std::atomic<int> allocations = 0;
  std::atomic<int> cachedPreparations = 0;     // preparations that were given files
  std::atomic<int> preparationsFromCache = 0;  // attempts
  // The tokens of the preparations that were given files, in order.
  std::vector<hal::CacheToken> tokens();

  std::string name() const override { return options.name; }
  std::string version() const override { return options.version; }
  hal::DeviceType type() const override { return options.type; }
  int64_t featureLevel() const override { return 1000007; }
  hal::Capabilities capabilities() const override;
  std::vector<std::string> supportedExtensions() const override { return options.extensions; }
  Result<hal::CacheFileCounts> numberOfCacheFilesNeeded() const override;
  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override;
  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      hal::Cache cache) override;
  Result<std::shared_ptr<hal::PreparedModel>> prepareModelFromCache(
      const hal::PrepareOptions& options, hal::Cache cache) override;
  Result<std::unique_ptr<hal::Buffer>> allocate(const hal::BufferDescription& description,
                                                const std::vector<hal::BufferRole>& roles) override;

  // The allocated buffer with this token, or null.
  std::shared_ptr<struct FakeStorage> storage(uint32_t token);

 private:
  const std::shared_ptr<hal::Device> reference_;
  std::mutex mutex_;
  uint32_t lastToken_ = 0;
  std::map<uint32_t, std::weak_ptr<struct FakeStorage>> storages_;
  std::vector<hal::CacheToken> tokens_;
  std::map<hal::CacheToken, std::shared_ptr<const graph::Model>> saved_;
};

}  // namespace hearth::nnapi
