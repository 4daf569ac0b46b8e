// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cache/object/store_failure.h"
#include "cache/store/store_options.h"
#include "hearth/hearth.hpp"

namespace hearth::llm {

// The weight store that these options and the environment name. Errors: those of
// cache::StoreOptions::fromTexts().
cache::StoreResult<cache::StoreOptions> weightStoreOptions(const CompileOptions& options);

}  // namespace hearth::llm
