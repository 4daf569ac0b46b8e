// SPDX-License-Identifier: Apache-2.0
// Tells people what a compilation would do with its cache files and why, and what an application's
// cache folder holds. The functions change, create and prepare nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/model.h"
#include "hal/device.h"
#include "runtime/compilation_cache.h"
#include "runtime/partitioned_model.h"

namespace hearth::runtime {

struct CacheFileState {
  std::string name;  // in the folder
  CacheFileKind kind = CacheFileKind::kModel;
  uint32_t index = 0;
  bool exists = false;
  uint64_t bytes = 0;
  int64_t modified = 0;   // nanoseconds since 1970
  bool isLocked = false;  // by a process that writes the file, or by the client
};

// One part of a partitioned model.
struct CacheExplanation {
  enum class State {
    kHit,
    kMiss,
    kUncached,  // the device caches nothing
    kUnknown,   // the driver does not tell
  };
  std::string device;
  size_t operations = 0;
  State state = State::kUncached;
  std::string code;    // a word for programs, "hit" or why not
  std::string reason;  // a sentence; empty for a hit
  std::string key;     // the first 64 letters of the files' names
  std::vector<CacheFileState> files;
  std::optional<bool> isSameModel;  // see hal::CacheVerdict
};

// Returns the parts in the order in which preparePartitioned() prepares them, and fails like it.
// `options.cache` must be set.
Result<std::vector<CacheExplanation>> explainParts(
    std::shared_ptr<const graph::Model> model,
    const std::vector<std::shared_ptr<hal::Device>>& devices, PartitioningOptions options);

// Files whose names begin with the same key.
struct CacheSet {
  std::string key;
  std::vector<CacheFileState> files;
  bool isVerified = false;
  std::string code;             // a word for programs, "verified" or why not
  std::string reason;           // a sentence; empty when verified
  std::string device;           // whose build wrote the files; empty = no device here, or not known
  std::string build;            // of the driver that wrote them, hexadecimal; empty = not known
  std::optional<uid_t> user;    // who wrote them
  std::optional<int64_t> used;  // nanoseconds since 1970, as the driver's map has it
};

struct CacheListing {
  std::vector<CacheSet> sets;       // last written first
  std::vector<std::string> others;  // names that are no cache files, sorted
};

// Compares the files of a folder with the map. Errors: kNotFound for a folder that does not exist,
// kIo for one that cannot be read.
Result<CacheListing> listCacheFolder(const std::string& folder,
                                     const std::vector<std::shared_ptr<hal::Device>>& devices);

// JSON objects with the keys of docs/cli.md. States: "hit", "miss", "uncached", "unknown".
std::string explanationJson(const std::vector<CacheExplanation>& parts);
std::string listingJson(const CacheListing& listing);

}  // namespace hearth::runtime
