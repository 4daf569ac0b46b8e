// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hal/device.h"

namespace hearth::ipc {

// A device that adds two tensors of floats, has memory of its own, and computes when a test lets
// it.
class FakeDevice : public hal::Device, public std::enable_shared_from_this<FakeDevice> {
 public:
  std::string name() const override { return "fake"; }
  std::string version() const override { return "1.5"; }
  hal::DeviceType type() const override { return hal::DeviceType::kAccelerator; }
  int64_t featureLevel() const override { return 31; }
  hal::Capabilities capabilities() const override;
  std::vector<std::string> supportedExtensions() const override {
    return {"com.example", "hearth.custom"};
  }
  std::vector<hal::ExtensionOperandType> extensionOperandTypes() const override {
    return {{"com.example", 3, 16, true}, {"com.example", 4, 2, false}};
  }
  Result<hal::CacheFileCounts> numberOfCacheFilesNeeded() const override {
    return hal::CacheFileCounts{1, 2};
  }
  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override;
  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      hal::Cache cache) override;
  Result<std::unique_ptr<hal::Buffer>> allocate(const hal::BufferDescription& description,
                                                const std::vector<hal::BufferRole>& roles) override;
  void flush() override { ++flushes; }
  void warmUp() override { ++warmUps; }

  // Computations wait until there are none of these.
  void hold();
  void letGo();
  // The same for preparations.
  void holdPreparations();
  // Waits until so many computations have begun.
  void waitForComputations(int count);

  // What computations return from now on instead of their own results; they compute all the same.
  void answerWith(std::optional<hal::ExecutionResult> result);
  // The name of the thread that computed last.
  std::string threadName() const;

  // The bytes of a buffer of this device; null when there is none.
  std::shared_ptr<std::vector<uint8_t>> bufferBytes(uint32_t token);
  // For executions.
  void computationBegins();
  hal::ExecutionResult answer(hal::ExecutionResult own) const;

  std::atomic<bool> ignoresDeadlines = false;
  std::atomic<bool> tellsProgress = false;  // while computations wait
  std::atomic<int> prepared = 0;            // models that exist
  std::atomic<int> executions = 0;          // executions that exist
  std::atomic<int> flushes = 0;
  std::atomic<int> warmUps = 0;
  hal::PrepareOptions lastOptions;
  hal::CacheToken lastToken{};
  std::vector<bool> lastFiles;  // which of the cache files were open

 private:
  friend class FakeBuffer;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool isHeld_ = false;
  bool arePreparationsHeld_ = false;
  int begun_ = 0;
  std::optional<hal::ExecutionResult> answer_;
  std::string threadName_;
  uint32_t lastBuffer_ = 0;
  std::map<uint32_t, std::shared_ptr<std::vector<uint8_t>>> buffers_;
};

}  // namespace hearth::ipc
