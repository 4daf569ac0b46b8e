// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "hal/cache_explainer.h"
#include "hal/device.h"
#include "ipc/host_link.h"
#include "ipc/turn.h"

namespace hearth::ipc {

// A device whose driver is in another process, its host. When the host ends, what it is computing
// ends as kDeadObject; the next use starts it again and prepares its models again from what the
// client has kept. Does without operators that the program has registered in its own process.
//
// A host in a sandbox may use no files but those that it was started with. Models whose driver
// options name files or folders (values that begin with '/', or several of them between colons) are
// therefore prepared in a host of their own, which ends with the last of them.
class HostedDevice final : public hal::Device, public hal::CacheExplainer {
 public:
  // Connects to the host of the device `name`. `make` opens hosts that may use more files; where it
  // is empty, all models are prepared in the one host. Errors as HostLink::create().
  static Result<std::shared_ptr<HostedDevice>> create(std::string name, HostOpener open,
                                                      HostMaker make = {});

  // What the host of most models says about itself, and what is known of its end.
  struct State {
    bool isShared = false;  // whether other processes are served, too
    int process = 0;        // the host's number in its name space; 0 when it is gone
    uint32_t clients = 0;
    uint64_t memory = 0;    // bytes of the host's process that no other one shares
    uint64_t restarts = 0;  // that this process has seen
  };
  // Starts no host. The numbers of one that does not answer within a second are 0.
  State state() const;

  // How many devices the driver's library has, as far as its host knows.
  uint32_t libraryDevices() const { return link_->device().libraryDevices; }

  std::string name() const override { return link_->device().name; }
  std::string version() const override { return link_->device().version; }
  hal::DeviceType type() const override { return link_->device().type; }
  int64_t featureLevel() const override { return link_->device().featureLevel; }
  hal::Capabilities capabilities() const override { return link_->device().capabilities; }
  std::vector<std::string> supportedExtensions() const override;
  std::vector<hal::ExtensionOperandType> extensionOperandTypes() const override {
    return link_->device().extensionTypes;
  }
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
  Result<base::Sha256Digest> cacheBuild() const override;
  // kCacheNotTold where the driver does not tell, or the host does not answer.
  hal::CacheVerdict explainCache(const graph::Model& model, const hal::PrepareOptions& options,
                                 const hal::Cache& cache) override;
  void flush() override;
  Result<std::unique_ptr<hal::Buffer>> allocate(const hal::BufferDescription& description,
                                                const std::vector<hal::BufferRole>& roles) override;

 private:
  HostedDevice(std::shared_ptr<HostLink> link, HostMaker make)
      : link_(std::move(link)), make_(std::move(make)) {}

  // The link to the host for models with these options.
  Result<std::shared_ptr<HostLink>> linkFor(const hal::PrepareOptions& options);

  const std::shared_ptr<HostLink> link_;
  const HostMaker make_;
  base::Mutex mutex_;
  Turn opening_;
  // Of the other hosts, by the files that they may use. Guarded by mutex_.
  std::map<std::vector<std::string>, std::weak_ptr<HostLink>> others_;
};

}  // namespace hearth::ipc
