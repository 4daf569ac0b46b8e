// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace hearth::cpu {

// What packed weights and plans depend on besides the model. Value type.
struct BuildIdentity {
  base::Sha256Digest driver{};   // of this driver's code
  base::Sha256Digest xnnpack{};  // of the library's sources
  // Of what the packing functions that this CPU gets make of fixed weights: XNNPACK's own key does
  // not tell instruction sets apart.
  base::Sha256Digest packing{};
  std::vector<std::string> cpuFeatures;  // those that choose kernels, for people; sorted

  // All of it but the names of the features.
  base::Sha256Digest fingerprint() const;
};

// Of this process; made once, after XNNPACK was initialised. The environment variable
// HEARTH_PACKING_SALT is mixed into `packing`, so that tests can pretend another CPU. Thread-safe.
const Result<BuildIdentity>& buildIdentity();

}  // namespace hearth::cpu
