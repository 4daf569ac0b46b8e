// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "base/sha256.h"
#include "graph/model.h"
#include "hal/device.h"

namespace hearth::hal {

// The code of a verdict that is none: what became of the files cannot be told.
inline constexpr char kCacheNotTold[] = "not-told";

// What prepareModelFromCache would do.
struct CacheVerdict {
  bool isHit = false;
  std::string code;    // a word for programs: "hit", why not, or kCacheNotTold
  std::string reason;  // a sentence why not; empty for a hit
  // Whether the files hold the model that was asked about, which no compilation checks; nothing
  // when that is not known. Weights are not compared.
  std::optional<bool> isSameModel;
};

// Explains a device's compilation cache files to people. To be implemented beside Device.
// Thread-safe.
class CacheExplainer {
 public:
  virtual ~CacheExplainer() = default;
  // The cache::CacheOwner::build of the files that the device accepts. kOpFailed when it cannot
  // tell.
  virtual Result<base::Sha256Digest> cacheBuild() const = 0;
  // Says what prepareModelFromCache would do. Changes neither the files nor anything else that the
  // driver keeps.
  virtual CacheVerdict explainCache(const graph::Model& model, const PrepareOptions& options,
                                    const Cache& cache) = 0;
};

}  // namespace hearth::hal
