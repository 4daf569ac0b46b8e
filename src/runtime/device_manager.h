// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hal/device.h"
#include "hal/driver_library.h"
#include "runtime/device_speeds.h"

namespace hearth::runtime {

// Name of the device that is the last resort and wins ties.
inline constexpr char kReferenceDeviceName[] = "nnapi-reference";

// The devices of this process in the order of preference. Immutable, thread-safe.
class DeviceManager {
 public:
  // `leftOut` is what the error for a device that is not there tells of.
  explicit DeviceManager(std::vector<std::shared_ptr<hal::Device>> devices,
                         std::vector<hal::LeftOutDriver> leftOut = {},
                         std::shared_ptr<DeviceSpeeds> speeds = nullptr)
      : devices_(std::move(devices)), leftOut_(std::move(leftOut)), speeds_(std::move(speeds)) {}

  // Returns the `devices` that can be registered. A device that asks for more than kMaxCacheFiles
  // of a kind, or does not answer how many it wants, is logged and left out.
  static std::vector<std::shared_ptr<hal::Device>> registrable(
      std::vector<std::shared_ptr<hal::Device>> devices);

  // hearth-cpu, then the drivers whose manifests lie along the search path, in its order, then
  // nnapi-reference; each in this process or behind a host, as manifests and HEARTH_DRIVER_HOSTS
  // say. The first call finds them; a driver that cannot be loaded or reached is logged and left
  // out. Thread-safe.
  static const DeviceManager& shared();

  // Starts a thread that makes shared() and warms its devices up, while the caller reads a model to
  // compile. Only the first call of a process does anything. Thread-safe; a fork and exit() wait
  // for the thread.
  static void warmUp();

  const std::vector<std::shared_ptr<hal::Device>>& devices() const { return devices_; }

  // By which models are divided; null where no driver asks to be measured.
  DeviceSpeeds* speeds() const { return speeds_.get(); }

  // The last resort, nnapi-reference; null where these devices have none.
  std::shared_ptr<hal::Device> reference() const;

  // The device with this name; null when there is none.
  std::shared_ptr<hal::Device> find(std::string_view name) const;

  // What a client means that asks for one device: the device with this name, or all devices of the
  // type "cpu", "gpu" or "accelerator", in upper or lower case, in the order of preference; at
  // least one. kNotFound when there is none; the message lists the devices and their types, and
  // says why the named one is left out.
  Result<std::vector<std::shared_ptr<hal::Device>>> select(std::string_view nameOrType) const;

 private:
  std::vector<std::shared_ptr<hal::Device>> devices_;
  std::vector<hal::LeftOutDriver> leftOut_;
  std::shared_ptr<DeviceSpeeds> speeds_;
};

}  // namespace hearth::runtime
