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
  kReadOnly,   // nothing is written
  kReadWrite,  // payloads are checked in the background
  kStrict,     // as kReadWrite, and every byte is checked before use
};

// How a store is opened. Value type.
struct StoreOptions {
  std::string path;    // the user's own store; empty = none, only system stores
  std::string bundle;  // a file that is used in place of all stores; empty = none
  StoreMode mode = StoreMode::kReadWrite;
  uint64_t maxBytes = 0;  // on disk; 0 = 16 GiB or a tenth of the file system, the smaller
  std::vector<std::string> systemStores;  // read-only, searched first in this order
  BuildFingerprint fingerprint{};         // of the plans that this process can use
  std::optional<BootId> boot;             // for tests: pretends that this boot runs
  bool operator==(const StoreOptions&) const = default;

  // From HEARTH_STORE, HEARTH_STORE_MODE, HEARTH_STORE_SIZE and HEARTH_SYSTEM_STORES, with
  // $XDG_CACHE_HOME/hearth/store or $HOME/.cache/hearth/store as standard path. kNoHome when there
  // is neither and no system store; kBadRequest for values that mean nothing. A process that must
  // not believe its environment (base::isSecureProcess) gets the standard system stores only.
  static StoreResult<StoreOptions> fromEnvironment();

  // The same as names and values, which travel through the driver interface: "store" (the path),
  // "store_mode" (off, read-only, read-write, strict), "store_bytes", "bundle", "system_stores"
  // (with a colon between two). Without fingerprint and boot.
  std::map<std::string, std::string> toTexts() const;
  // What is not among the texts is as the environment says; a wrong variable, or none, does not
  // count where there is any of them. Other names are left alone. kBadRequest as above.
  static StoreResult<StoreOptions> fromTexts(const std::map<std::string, std::string>& texts);
};

}  // namespace hearth::cache
