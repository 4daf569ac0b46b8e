// SPDX-License-Identifier: Apache-2.0
// A device that computes with somebody's external delegate for TensorFlow Lite, such as vendors of
// NPUs ship.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cache/store/store_options.h"
#include "drivers/delegate/vendor_library.h"
#include "hal/device.h"
#include "hal/driver_manifest.h"
#include "tflite_abi/builtin_codes.h"

namespace hearth::drivers::delegate {

struct DeviceSettings {
  std::string name;     // of the device
  std::string library;  // the delegate's file
  DelegateOptions options;
  DelegateOptions variables;            // of the environment, which the caller has set
  tflite_abi::TensorflowMinor version;  // of TensorFlow, that the delegate was compiled for
  // After which time this process ends when the library does not end a call: to load it, to take,
  // prepare or give up a model. 0: it waits. For hosts.
  std::chrono::seconds prepareLimit{0};
  // The options that say where the library keeps a cache of its own.
  std::optional<hal::DriverManifest::Delegate::Cache> cache;
  // Custom operations that the delegate may take.
  std::vector<std::string> customOperators;
  // The weight store in which that cache, and what the delegate takes, is remembered.
  std::optional<cache::StoreOptions> store;
};

// What a manifest says (DriverManifest::delegate, which it must have), with the weight store of the
// environment. kBadData for a version that is none of TensorFlow 2.
Result<DeviceSettings> settingsOf(const hal::DriverManifest& manifest);

// Loads the library; a delegate is made for each model. The vendor's code runs in this process, so
// the process should be a driver host. Errors: those of VendorLibrary::load().
Result<std::shared_ptr<hal::Device>> createDevice(DeviceSettings settings);

}  // namespace hearth::drivers::delegate
