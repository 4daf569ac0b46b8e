// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace hearth::cpu {

// What packed weights and plans depend on besides the model. Value type.
struct BuildIdentity {
  base::Sha256Digest driver{};   // of the build identifier of this driver's library
  base::Sha256Digest xnnpack{};  // of XNNPACK's build identifier, which names its sources
  // Digest of what XNNPACK's packing functions for this CPU make of fixed weights: XNNPACK's own
  // key does not tell instruction sets apart.
  base::Sha256Digest packing{};
  // For people: kArchitecture, and cpuFeatures() (processor_features.h). The driver's and XNNPACK's
  // identifiers differ between architectures anyway.
  std::string architecture;
  std::vector<std::string> cpuFeatures;

  // Digest of driver, xnnpack and packing.
  base::Sha256Digest fingerprint() const;
  // What is packed for, for people: "arm64 with dotprod and fp16".
  std::string target() const;
};

// Determines the identity by packing fixed weights. XNNPACK must be initialized. The environment
// variable HEARTH_PACKING_SALT is mixed into `packing`, so that tests can pretend another CPU.
// Callers use buildIdentity() of host_facts.h, which does this once for the process.
Result<BuildIdentity> findBuildIdentity();

// The same where `packing` is known.
Result<BuildIdentity> buildIdentityWith(const base::Sha256Digest& packing);

// A digest of driver, XNNPACK, CPU and salt that needs no kernel to run. CPUs that pack alike may
// differ in it. None where the driver's library has no build identifier. Thread-safe.
std::optional<base::Sha256Digest> processorIdentity();

// The mark of this process's plans, by which eviction tells them from plans of other builds and
// CPUs: processorIdentity(), or zeros where there is none; with zeros eviction treats all alike.
base::Sha256Digest storeFingerprint();

}  // namespace hearth::cpu
