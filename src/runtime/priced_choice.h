// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/model.h"
#include "runtime/device_speed.h"
#include "runtime/prices.h"

namespace hearth::runtime {

// A device of which operations can be had, and at which price.
struct PricedDevice {
  std::string name;
  std::optional<DeviceSpeed> speed;
  std::vector<bool> takes;  // each operation of the main subgraph; of a device with a speed
};

struct PricedChoice {
  std::vector<size_t> deviceOf;  // each operation
  double seconds = 0;            // expected
  std::string reason;            // for people: what the devices alone would take, and this choice
};

// Divides the main subgraph among the devices with speeds so that the expected time is short. A
// division has to save a tenth against the best device alone, since speeds are estimates. An
// operation that none of these devices takes stays with its device of `others`.
PricedChoice chooseByPrice(const graph::Model& model, const Prices& prices,
                           std::span<const PricedDevice> devices, std::span<const size_t> others);

}  // namespace hearth::runtime
