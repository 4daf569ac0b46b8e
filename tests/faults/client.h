// SPDX-License-Identifier: Apache-2.0
// For tests of what clients see when the system refuses something: a model, and one use of it, from
// its file to its result, through libhearth.so and libneuralnetworks.so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hearth/hearth.h"

namespace hearth::faults {

// A new folder that is removed with this object.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path(const std::string& name) const { return path_ / name; }
  // Removes the folder's content.
  void clear() const;

 private:
  std::filesystem::path path_;
};

// CONV_2D, a table look-up and FULLY_CONNECTED: weights with segments of their own in the store,
// weights that share a segment, and constants that stay in the file.
std::vector<uint8_t> modelBytes(int32_t classes = 160);
void writeFile(const std::string& path, const std::vector<uint8_t>& bytes);

// The outcome of one use of the model.
struct Outcome {
  hearth_status status = HEARTH_OK;
  std::string message;        // of the failure, if there was memory for it
  std::vector<float> result;  // of the run that succeeded
  hearth_start_state state = HEARTH_START_UNCACHED;
  std::string reason;
};

struct Life {
  std::string model;  // its file
  hearth_cache_policy cache = HEARTH_CACHE_OFF;
  std::string store;
  std::string bundle;       // used instead of the store
  std::string cacheFolder;  // for compilation caching
  hearth_preparation preparation = HEARTH_PREPARE_WHOLE;
  unsigned threads = 2;
  bool isStarted = false;  // in the background, and waited for
  std::string device;      // empty: the first that takes the model
};

// Loads, compiles, runs and frees everything. `between` is called before the run.
Outcome live(const Life& life, const std::function<void()>& between = nullptr);

// The same through NNAPI: compute, then startCompute, then startComputeWithDependencies. Holds the
// first code that is not NO_ERROR, and the sums of the results.
struct NnapiOutcome {
  int code = 0;
  std::vector<float> results;
};
NnapiOutcome liveWithNnapi();

}  // namespace hearth::faults
