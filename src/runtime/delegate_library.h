// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "hal/device.h"

namespace hearth::runtime {

// The device of this process that an installed driver makes of an external delegate's library: the
// one with a manifest that names this file, or, for a name without folders, a file of this name.
// Null where there is none. Thread-safe.
std::shared_ptr<hal::Device> deviceOfDelegateLibrary(const std::string& library);

}  // namespace hearth::runtime
