// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "hal/device.h"
#include "runtime/device_speed.h"

namespace hearth::runtime {

// How fast the devices of this process are, as far as somebody wanted to know. A device is measured
// when its speed is first asked for, once for each version of it, CPU and number of threads, in
// this process and in a host: the weight store remembers it. Thread-safe.
class DeviceSpeeds {
 public:
  using Measure = std::function<Status(hal::Device&, std::span<const NumberKind>, unsigned threads,
                                       DeviceSpeed*)>;

  // `measured` are the names of the devices whose own figures are not believed.
  explicit DeviceSpeeds(std::vector<std::string> measured, Measure measure);

  // Whether of() may know the device's speed.
  bool has(const hal::Device& device) const;

  // The speed with the products of `kinds` at least; nothing for a device that is not measured, or
  // cannot be. With a deadline in `options` nothing is measured.
  std::optional<DeviceSpeed> of(hal::Device& device, std::span<const NumberKind> kinds,
                                const hal::PrepareOptions& options);

  // Measures the device with all kinds of numbers that it computes, whatever is known of it, as
  // after a measurement beside other work; what is found takes the place of that. kUnsupported for
  // a device that is not measured; errors of its executions.
  Result<DeviceSpeed> renew(hal::Device& device, const hal::PrepareOptions& options);

  // What is known; measures nothing.
  std::optional<DeviceSpeed> known(const hal::Device& device, const hal::PrepareOptions& options);

 private:
  using Key = std::pair<std::string, unsigned>;  // the device's name, and threads

  // Measures, and lets others do so afterwards.
  Status measureAlone(hal::Device& device, std::span<const NumberKind> kinds, const Key& key,
                      DeviceSpeed* speed);

  const std::vector<std::string> measured_;
  const Measure measure_;
  base::Mutex mutex_;
  base::Condition changed_;
  std::map<Key, DeviceSpeed> speeds_;
  // Who measures, so that two do not disturb each other; a forked child is not its parent.
  pid_t measuring_ = 0;
};

}  // namespace hearth::runtime
