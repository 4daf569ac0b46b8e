// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "hal/driver_manifest.h"
#include "tools/options.h"

namespace hearth::tools {

// Puts this process, the host of a driver, into its sandbox (ipc/sandbox.h). What stays open to it:
// the weight stores of the environment, what the driver remembers of compilation caches, the folder
// of the trace, the files of `options`, and what the manifest says that the driver needs. Call it
// when the driver is loaded and all sockets are there. Errors: those of ipc::enterSandbox().
Status confineHost(const ServeOptions& options, const hal::DriverManifest& manifest);

}  // namespace hearth::tools
