// SPDX-License-Identifier: Apache-2.0
// Device `hearth-cpu`: runs XNNPACK's kernels, and ours where XNNPACK has none or slower ones.
#pragma once

#include <memory>

#include "hal/device.h"

namespace hearth::cpu {

inline constexpr const char* kCpuDeviceName = "hearth-cpu";

// Creates the device. That is cheap: XNNPACK and its self-test start with the first model.
std::shared_ptr<hal::Device> createCpuDevice();

}  // namespace hearth::cpu
