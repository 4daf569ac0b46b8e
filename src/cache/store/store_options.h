// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cache/object/boot_id.h"
#include "cache/object/store_failure.h"
#include "cache/plan/plan_file.h"

namespace hearth::cache {

enum class StoreMode {
  kOff,
  kReadOnly,   // writes nothing
  kReadWrite,  // checks payloads in the background
  kStrict,     // as kReadWrite, but checks every byte before use
};

// How a store is opened. Value type.
struct StoreOptions {
  std::string path;    // the user's own store; empty = none, only system stores
  std::string bundle;  // a file that replaces all stores; empty = none
  StoreMode mode = StoreMode::kReadWrite;
  uint64_t maxBytes = 0;  // on disk; 0 = 16 GiB or a tenth of the file system, the smaller
  std::vector<std::string> systemStores;  // read-only, searched first in this order
  BuildFingerprint fingerprint{};         // of the plans that this process can use
  std::optional<BootId> boot;             // for tests: pretends that this is the current boot
  bool operator==(const StoreOptions&) const = default;

  // Reads HEARTH_STORE, HEARTH_STORE_MODE, HEARTH_STORE_SIZE and HEARTH_SYSTEM_STORES. The default
  // path is $XDG_CACHE_HOME/hearth/store or $HOME/.cache/hearth/store. Errors: kNoHome when there
  // is neither and no system store; kBadRequest for invalid values. A process that must not believe
  // its environment (base::isSecureProcess) gets the standard system stores only.
  static StoreResult<StoreOptions> fromEnvironment();

  // The same as names and values, which travel through the driver interface: "store" (the path),
  // "store_mode" (off, read-only, read-write, strict), "store_bytes", "bundle", "system_stores"
  // (separated by colons). Leaves out fingerprint and boot.
  std::map<std::string, std::string> toTexts() const;
  // The inverse. Options that are not among the texts come from the environment; if any of them is
  // among the texts, a wrong or missing variable is no error. Other names are ignored. Errors as
  // fromEnvironment().
  static StoreResult<StoreOptions> fromTexts(const std::map<std::string, std::string>& texts);
};

}  // namespace hearth::cache
