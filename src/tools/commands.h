// SPDX-License-Identifier: Apache-2.0
// The commands; each prints to standard output.
#pragma once

#include <functional>
#include <string>

#include "tools/cache_options.h"
#include "tools/failure.h"
#include "tools/options.h"

namespace hearth::tools {

// `run` and `bench`.
Outcome<void> runCommand(const RunOptions& options);
// `bench --api nnapi`: start and inference by NNAPI's C functions, with or without cache files.
Outcome<void> nnapiBenchCommand(const RunOptions& options);
// `describeLanguage` tells as JSON what a container's file says of the language model in it; empty
// = none.
Outcome<void> inspectCommand(
    const InspectOptions& options,
    const std::function<std::string(const std::string& path)>& describeLanguage);
Outcome<void> devicesCommand(const DevicesOptions& options);
// `devices --probe`: lets an external delegate for TensorFlow Lite take a model, beside the
// processor.
Outcome<void> probeCommand(const DevicesOptions& options);
// Returns when the host is told to end, or its one client is gone.
Outcome<void> serveCommand(const ServeOptions& options);
// `verify` removes wrong objects from the store and then fails.
Outcome<void> cacheCommand(const CacheOptions& options);
// The commands of `hearth cache` that prepare a model: explain and warm.
Outcome<void> cacheModelCommand(const CacheOptions& options);
// `ls`, `verify` and `explain` with --cache-dir. `verify` fails if a file does not verify.
Outcome<void> cacheFolderCommand(const CacheOptions& options);
// Prints the report in any case, and fails if a case fails.
Outcome<void> conformanceCommand(const ConformanceOptions& options);

}  // namespace hearth::tools
