// SPDX-License-Identifier: Apache-2.0
// Custom operations of .tflite files that a device computes and this library cannot, such as those
// into which tools of an NPU's vendor have compiled a part of a model.
#pragma once

#include <string_view>

#include "base/result.h"
#include "ops/custom_operator.h"

namespace hearth::ops {

// Makes a name known for the life of the process: findCustomOperator() then has an operator for it,
// whose outputs are as the file says and whose compute() is an error, unless the program registers
// one of its own. Does nothing for a name that is known. kBadData for an empty name and one with
// more than 1024 bytes. Thread-safe.
Status registerDeviceOperator(std::string_view name);

// The operator of a registered name; null for any other. Thread-safe.
const CustomOperator* findDeviceOperator(std::string_view name);

}  // namespace hearth::ops
