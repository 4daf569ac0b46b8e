// SPDX-License-Identifier: Apache-2.0
// CUSTOM operations are operators that the program registered in its own process
// (ops/custom_operator.h). Devices that do not say otherwise never get one.
#pragma once

#include <string_view>
#include <vector>

#include "graph/model.h"
#include "hal/device.h"

namespace hearth::hal {

// The extension that a device names in supportedExtensions() if it takes CUSTOM operations: those
// whose operators it knows by name, or, as devices of the runtime's own library do, all that are
// registered. It then answers for each of them in supportedOperations().
inline constexpr std::string_view kCustomExtensionName = "hearth.custom";

// Takes CUSTOM operations, and control flow with such operations, out of the answer of a device
// that does not name the extension.
void leaveOutCustomOperations(const Device& device, const graph::Model& model,
                              std::vector<OperationSupport>* support);

}  // namespace hearth::hal
