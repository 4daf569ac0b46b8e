// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "hal/device.h"
#include "hal/driver_manifest.h"

namespace hearth::tools {

// The device of a manifest, in this process, whatever host the manifest names: of a driver library,
// a support library of NNAPI, or an external delegate for TensorFlow Lite. For the latter two this
// process gets the environment that they want, and does not find drivers any more: a library that
// holds Hearth must not find itself among them. To be called before other threads are started.
// Errors: those of loading the library; kUnsupported for a manifest that names none.
Result<std::shared_ptr<hal::Device>> deviceOfManifest(const hal::DriverManifest& manifest);

}  // namespace hearth::tools
