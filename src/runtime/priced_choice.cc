// SPDX-License-Identifier: Apache-2.0
#include "runtime/priced_choice.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/format.h"
#include "runtime/partition_steps.h"

namespace hearth::runtime {
namespace {

// What a division must save to be worth it.
constexpr double kWorthDividing = 0.9;
// How many divisions are looked at for each model, so that a long one is divided in milliseconds.
constexpr int kMostTrials = 300;

std::string millisecondsText(double seconds) {
  return base::formatText("{:.3g} ms", seconds * 1e3);
}

class Search {
 public:
  Search(const graph::Model& model, const Prices& prices, std::span<const PricedDevice> devices,
         std::span<const size_t> others)
      : main_(model.main()), prices_(prices), devices_(devices), others_(others) {
    for (const PricedDevice& device : devices) speeds_.push_back(device.speed);
  }

  // All that the device takes, and the rest where it is cheapest.
  std::vector<size_t> preferring(size_t device) const {
    std::vector<size_t> deviceOf = cheapest();
    for (size_t i = 0; i < deviceOf.size(); ++i)
      if (devices_[device].takes[i]) deviceOf[i] = device;
    return deviceOf;
  }

  // Each operation where it is cheapest, wherever its tensors are.
  std::vector<size_t> cheapest() const {
    std::vector<size_t> deviceOf;
    for (size_t i = 0; i < main_.operations.size(); ++i) {
      std::optional<size_t> best;
      for (size_t d = 0; d < devices_.size(); ++d)
        if (takes(d, i) && (!best || price(d, i) < price(*best, i))) best = d;
      deviceOf.push_back(best.value_or(others_[i]));
    }
    return deviceOf;
  }

  double timeOf(const std::vector<size_t>& deviceOf) {
    ++trials_;
    return prices_.ofSteps(speeds_, partitionSteps(main_, deviceOf, devices_.size()));
  }

  // Moves whole steps to other devices while that makes the time shorter.
  void improve(std::vector<size_t>* deviceOf, double* seconds) {
    for (bool isBetter = true; isBetter && trials_ < kMostTrials;) {
      isBetter = false;
      for (const PartitionStep& step : partitionSteps(main_, *deviceOf, devices_.size()))
        for (size_t d = 0; d < devices_.size() && trials_ < kMostTrials; ++d)
          isBetter = tryMove(step, d, deviceOf, seconds) || isBetter;
    }
  }

 private:
  bool takes(size_t device, size_t operation) const {
    return devices_[device].speed && devices_[device].takes[operation];
  }
  double price(size_t device, size_t operation) const {
    return prices_.ofOperation(*devices_[device].speed, operation);
  }
  bool tryMove(const PartitionStep& step, size_t device, std::vector<size_t>* deviceOf,
               double* seconds) {
    const bool canMove = device != (*deviceOf)[step.operations[0]] &&
                         std::ranges::all_of(step.operations, [&](uint32_t operation) {
                           return takes(device, operation);
                         });
    if (!canMove) return false;
    std::vector<size_t> moved = *deviceOf;
    for (const uint32_t operation : step.operations) moved[operation] = device;
    const double time = timeOf(moved);
    if (time >= *seconds) return false;
    *deviceOf = std::move(moved);
    *seconds = time;
    return true;
  }

  const graph::Subgraph& main_;
  const Prices& prices_;
  const std::span<const PricedDevice> devices_;
  const std::span<const size_t> others_;
  std::vector<std::optional<DeviceSpeed>> speeds_;
  int trials_ = 0;
};

}  // namespace

PricedChoice chooseByPrice(const graph::Model& model, const Prices& prices,
                           std::span<const PricedDevice> devices, std::span<const size_t> others) {
  Search search(model, prices, devices, others);
  std::optional<PricedChoice> whole, divided;
  const auto consider = [](std::optional<PricedChoice>* best, std::vector<size_t> deviceOf,
                           double seconds) {
    if (!*best || seconds < (*best)->seconds) *best = {std::move(deviceOf), seconds, ""};
  };
  std::string reason;
  for (size_t d = 0; d < devices.size(); ++d) {
    if (!devices[d].speed || !std::ranges::all_of(devices[d].takes, std::identity())) continue;
    std::vector<size_t> deviceOf(others.size(), d);
    const double seconds = search.timeOf(deviceOf);
    reason += base::formatText("{} alone {}, ", devices[d].name, millisecondsText(seconds));
    consider(&whole, std::move(deviceOf), seconds);
  }
  std::vector<std::vector<size_t>> starts = {search.cheapest()};
  for (size_t d = 0; d < devices.size(); ++d)
    if (devices[d].speed) starts.push_back(search.preferring(d));
  for (std::vector<size_t>& deviceOf : starts) {
    double seconds = search.timeOf(deviceOf);
    search.improve(&deviceOf, &seconds);
    consider(&divided, std::move(deviceOf), seconds);
  }
  const bool isWhole = whole && divided->seconds > kWorthDividing * whole->seconds;
  PricedChoice choice = isWhole ? *std::move(whole) : *std::move(divided);
  reason += isWhole ? base::formatText("taken {}", devices[choice.deviceOf[0]].name)
                    : base::formatText("taken a division of {}", millisecondsText(choice.seconds));
  choice.reason = std::move(reason);
  return choice;
}

}  // namespace hearth::runtime
