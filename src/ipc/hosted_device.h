// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "hal/device.h"
#include "ipc/host_link.h"

namespace hearth::ipc {

// A device whose driver is in another process, its host. When the host ends, what it is computing
// ends as kDeadObject; the next use starts it again and prepares its models again from what the
// client has kept. Does without operators that the program has registered in its own process.
class HostedDevice final : public hal::Device {
 public:
  // Connects to the host of the device `name`. Errors as HostLink::create().
  static Result<std::shared_ptr<HostedDevice>> create(std::string name, HostOpener open);

  std::string name() const override { return link_->device().name; }
  std::string version() const override { return link_->device().version; }
  hal::DeviceType type() const override { return link_->device().type; }
  int64_t featureLevel() const override { return link_->device().featureLevel; }
  hal::Capabilities capabilities() const override { return link_->device().capabilities; }
  std::vector<std::string> supportedExtensions() const override;
  Result<hal::CacheFileCounts> numberOfCacheFilesNeeded() const override {
    return link_->device().cacheFiles;
  }
  void warmUp() override;
  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override;
  Result<std::vector<hal::OperationSupport>> explainOperations(const graph::Model& model) override;
  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      hal::Cache cache) override;
  Result<hal::StartReport> explainStart(std::shared_ptr<const graph::Model> model,
                                        const hal::PrepareOptions& options) override;
  Result<std::shared_ptr<hal::PreparedModel>> prepareModelFromCache(
      const hal::PrepareOptions& options, hal::Cache cache) override;
  void flush() override;
  Result<std::unique_ptr<hal::Buffer>> allocate(const hal::BufferDescription& description,
                                                const std::vector<hal::BufferRole>& roles) override;

 private:
  explicit HostedDevice(std::shared_ptr<HostLink> link) : link_(std::move(link)) {}

  const std::shared_ptr<HostLink> link_;
};

}  // namespace hearth::ipc
