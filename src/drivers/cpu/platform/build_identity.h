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
  base::Sha256Digest driver{};   // of this driver's code
  base::Sha256Digest xnnpack{};  // of the library's sources
  // Of what the packing functions that this CPU gets make of fixed weights: XNNPACK's own key does
  // not tell instruction sets apart.
  base::Sha256Digest packing{};
  std::vector<std::string> cpuFeatures;  // those that choose kernels, for people; sorted

  // All of it but the names of the features.
  base::Sha256Digest fingerprint() const;
};

// Finds it out by packing fixed weights. XNNPACK has been started. The environment variable
// HEARTH_PACKING_SALT is mixed into `packing`, so that tests can pretend another CPU. Use
// buildIdentity() of host_facts.h, which does so once for the process.
Result<BuildIdentity> findBuildIdentity();

// The same where `packing` is known.
Result<BuildIdentity> buildIdentityWith(const base::Sha256Digest& packing);

// Tells driver, XNNPACK, CPU and salt apart without running a kernel, but more than need be: CPUs
// that pack alike may differ in it. None where the CPU does not tell what it is.
std::optional<base::Sha256Digest> processorIdentity();

// What plans of this process are marked with, so that garbage collection knows those of others:
// processorIdentity(), or zeros where there is none, which no plan is of.
base::Sha256Digest storeFingerprint();

}  // namespace hearth::cpu
