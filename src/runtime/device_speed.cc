// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_speed.h"

#include <cmath>
#include <cstring>

namespace hearth::runtime {
namespace {

constexpr size_t kFigures = 4 + kNumberKinds;
// The longest time that is believed.
constexpr double kMostSeconds = 1000;

std::array<double, kFigures> figuresOf(const DeviceSpeed& speed) {
  std::array<double, kFigures> figures = {speed.execution, speed.operation, speed.argumentByte,
                                          speed.movedByte};
  for (size_t kind = 0; kind < kNumberKinds; ++kind) figures[4 + kind] = speed.product[kind];
  return figures;
}

}  // namespace

std::vector<uint8_t> encodeSpeed(const DeviceSpeed& speed) {
  const std::array<double, kFigures> figures = figuresOf(speed);
  std::vector<uint8_t> bytes(sizeof figures);
  std::memcpy(bytes.data(), figures.data(), sizeof figures);
  return bytes;
}

std::optional<DeviceSpeed> decodeSpeed(std::span<const uint8_t> bytes) {
  std::array<double, kFigures> figures;
  if (bytes.size() != sizeof figures) return std::nullopt;
  std::memcpy(figures.data(), bytes.data(), sizeof figures);
  for (const double figure : figures)
    if (!std::isfinite(figure) || figure < 0 || figure > kMostSeconds) return std::nullopt;
  DeviceSpeed speed{figures[0], figures[1], figures[2], figures[3], {}};
  for (size_t kind = 0; kind < kNumberKinds; ++kind) speed.product[kind] = figures[4 + kind];
  return speed;
}

}  // namespace hearth::runtime
