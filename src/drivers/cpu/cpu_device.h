// SPDX-License-Identifier: Apache-2.0
// Device `hearth-cpu`: XNNPACK where it can, kernels of ours where it cannot.
#pragma once

#include <memory>

#include "hal/device.h"

namespace hearth::cpu {

inline constexpr const char* kCpuDeviceName = "hearth-cpu";

// The device is cheap until it prepares its first model, which starts XNNPACK and its self-test.
std::shared_ptr<hal::Device> createCpuDevice();

}  // namespace hearth::cpu
