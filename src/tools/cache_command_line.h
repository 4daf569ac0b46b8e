// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include "tools/cache_options.h"

namespace hearth::tools {

// Adds `cache` and its commands; parsing fills `options`, which outlives the parser.
CLI::App* addCacheCommand(CLI::App* app, CacheOptions* options);

}  // namespace hearth::tools
