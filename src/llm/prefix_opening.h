// SPDX-License-Identifier: Apache-2.0
// How a program that runs a language model comes to the store of prefixes.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cache/prefix/prefix_store.h"
#include "hearth/hearth.hpp"
#include "llm/model_identity.h"
#include "llm/prefix_cache.h"

namespace hearth::llm {

// The store of prefixes in the weight store that these options and the environment name. Errors:
// those of cache::StoreOptions::fromTexts(), PrefixStoreOptions::of() and PrefixStore::open().
cache::StoreResult<std::shared_ptr<cache::PrefixStore>> openPrefixStore(
    const CompileOptions& options);

// Whether models with these options run on hearth-cpu, of whose results alone prefixes are kept,
// before any is compiled: the options ask for no other device, and there is none.
bool isForCpuAlone(const CompileOptions& options);

// What the model with this file and identity has in that store. To be called when the model is
// loaded, or with ModelIdentity::check() then. Errors: kIo where the store cannot be opened, and
// those of ModelIdentity::digest().
Result<std::shared_ptr<const PrefixCache>> openPrefixes(const CompileOptions& options,
                                                        const ModelIdentity& identity,
                                                        const std::string& path);

}  // namespace hearth::llm
