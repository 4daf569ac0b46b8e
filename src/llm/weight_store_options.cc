// SPDX-License-Identifier: Apache-2.0
#include "llm/weight_store_options.h"

#include <map>
#include <string>

namespace hearth::llm {
namespace {

// As HEARTH_STORE_MODE has it; null for its default.
const char* modeName(hearth_cache_policy policy) {
  switch (policy) {
    case HEARTH_CACHE_OFF:
      return "off";
    case HEARTH_CACHE_READ_ONLY:
      return "read-only";
    case HEARTH_CACHE_READ_WRITE:
      return "read-write";
    case HEARTH_CACHE_STRICT:
      return "strict";
    case HEARTH_CACHE_DEFAULT:
      break;
  }
  return nullptr;
}

}  // namespace

cache::StoreResult<cache::StoreOptions> weightStoreOptions(const CompileOptions& options) {
  std::map<std::string, std::string> texts;
  if (!options.store.empty()) texts["store"] = options.store;
  if (const char* const mode = modeName(options.cache)) texts["store_mode"] = mode;
  if (!options.weightCache.empty()) texts["bundle"] = options.weightCache;
  return cache::StoreOptions::fromTexts(texts);
}

}  // namespace hearth::llm
