// SPDX-License-Identifier: Apache-2.0
// The commands; each prints to standard output.
#pragma once

#include "tools/cache_options.h"
#include "tools/failure.h"
#include "tools/options.h"

namespace hearth::tools {

// Both `run` and `bench`.
Outcome<void> runCommand(const RunOptions& options);
// `bench` through the C functions of NNAPI: start and inference, with or without cache files.
Outcome<void> nnapiBenchCommand(const RunOptions& options);
Outcome<void> inspectCommand(const InspectOptions& options);
Outcome<void> devicesCommand(const DevicesOptions& options);
// A store that has wrong objects is a failure of `verify`, which removes them.
Outcome<void> cacheCommand(const CacheOptions& options);
// The commands of `hearth cache` that prepare a model: explain and warm.
Outcome<void> cacheModelCommand(const CacheOptions& options);
// Those that take --cache-dir, with it: ls, verify (where files that do not verify are a failure)
// and explain.
Outcome<void> cacheFolderCommand(const CacheOptions& options);
// Prints the report also when cases fail, which is a failure.
Outcome<void> conformanceCommand(const ConformanceOptions& options);

}  // namespace hearth::tools
