// SPDX-License-Identifier: Apache-2.0
// Operations of extensions go only to devices that name the extension in supportedExtensions().
#pragma once

#include <string_view>
#include <vector>

#include "graph/model.h"
#include "hal/device.h"

namespace hearth::hal {

// The extension of CUSTOM operations, which are operators that the program registered in its own
// process (ops/custom_operator.h). A device that names it takes those whose operators it knows by
// name, or, as devices of the runtime's own library do, all that are registered. It then answers
// for each of them in supportedOperations().
inline constexpr std::string_view kCustomExtensionName = "hearth.custom";

// The extension of operations with strings, whose elements mean something in one process and one
// copy of the library only (memory/string_heap.h). The devices of the runtime's own library name
// it.
inline constexpr std::string_view kStringExtensionName = "hearth.strings";

// Takes out of a device's answer the operations of extensions that the device does not name, those
// with operands of such an extension, and control flow when a subgraph has such an operation.
void leaveOutExtensionOperations(const Device& device, const graph::Model& model,
                                 std::vector<OperationSupport>* support);

}  // namespace hearth::hal
