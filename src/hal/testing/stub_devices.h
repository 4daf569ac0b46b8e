// SPDX-License-Identifier: Apache-2.0
// Devices for tests to derive from, so that a test declares only what it is about.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hal/device.h"

namespace hearth::hal {

// Supports and prepares nothing.
class StubDevice : public Device {
 public:
  explicit StubDevice(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::string version() const override { return "1"; }
  DeviceType type() const override { return DeviceType::kOther; }
  int64_t featureLevel() const override { return 1000007; }
  Capabilities capabilities() const override { return {}; }
  Result<std::vector<OperationSupport>> supportedOperations(const graph::Model&) override {
    return fail(ErrorCode::kUnsupported, "The device {} supports nothing.", name_);
  }
  Result<std::shared_ptr<PreparedModel>> prepareModel(std::shared_ptr<const graph::Model>,
                                                      const PrepareOptions&, Cache) override {
    return fail(ErrorCode::kUnsupported, "The device {} prepares nothing.", name_);
  }

 private:
  const std::string name_;
};

// Hands models to another device, and has none of its caches and memories.
class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  std::string name() const override { return device_->name(); }
  std::string version() const override { return device_->version(); }
  DeviceType type() const override { return device_->type(); }
  int64_t featureLevel() const override { return device_->featureLevel(); }
  Capabilities capabilities() const override { return device_->capabilities(); }
  std::vector<std::string> supportedExtensions() const override {
    return device_->supportedExtensions();
  }
  Result<std::vector<OperationSupport>> supportedOperations(const graph::Model& model) override {
    return device_->supportedOperations(model);
  }
  Result<std::shared_ptr<PreparedModel>> prepareModel(std::shared_ptr<const graph::Model> model,
                                                      const PrepareOptions& options,
                                                      Cache cache) override {
    return device_->prepareModel(std::move(model), options, std::move(cache));
  }

 private:
  const std::shared_ptr<Device> device_;
};

}  // namespace hearth::hal
