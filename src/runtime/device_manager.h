// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hal/device.h"

namespace hearth::runtime {

// Name of the device that is the last resort and wins ties.
inline constexpr char kReferenceDeviceName[] = "nnapi-reference";

// The devices of this process in the order of preference. Immutable, thread-safe.
class DeviceManager {
 public:
  explicit DeviceManager(std::vector<std::shared_ptr<hal::Device>> devices)
      : devices_(std::move(devices)) {}

  // Those of `devices` that can be registered: one that asks for too many cache files, or does not
  // answer how many it wants, is logged and left out.
  static std::vector<std::shared_ptr<hal::Device>> registrable(
      std::vector<std::shared_ptr<hal::Device>> devices);

  // hearth-cpu, then the drivers found by manifests in the order of the search path, then
  // nnapi-reference. Made at the first call; a driver that cannot be loaded is logged and left out.
  static const DeviceManager& shared();

  // Begins, on a thread of its own, to make shared() and to warm its devices up: for whoever reads
  // a model that will then be compiled. Only the first call of a process does anything.
  // Thread-safe; a fork and the end of the process wait for it.
  static void warmUp();

  const std::vector<std::shared_ptr<hal::Device>>& devices() const { return devices_; }

  // The last resort, nnapi-reference; null where these devices have none.
  std::shared_ptr<hal::Device> reference() const;

  // kNotFound names the devices that there are.
  Result<std::shared_ptr<hal::Device>> find(std::string_view name) const;

 private:
  std::vector<std::shared_ptr<hal::Device>> devices_;
};

}  // namespace hearth::runtime
