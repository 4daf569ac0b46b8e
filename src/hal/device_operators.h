// SPDX-License-Identifier: Apache-2.0
// Custom operations of .tflite files that devices compute (ops/device_operator.h).
#pragma once

#include <string>
#include <string_view>

#include "ops/custom_operator.h"

namespace hearth::hal {

// The extension (Device::supportedExtensions()) of a device that computes the custom operations of
// this name.
std::string deviceOperatorExtension(std::string_view name);

// ops::findCustomOperator() of a name in a model, which knows those that the manifests of
// HEARTH_DRIVER_PATH name as "custom_operators". They are read when the first name is asked for
// that is not known otherwise. Thread-safe.
const ops::CustomOperator* findOperator(std::string_view name);

}  // namespace hearth::hal
