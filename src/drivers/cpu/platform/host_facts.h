// SPDX-License-Identifier: Apache-2.0
// What this process knows about the host it runs on. Finding it out takes milliseconds, most of a
// start from the store, so that stores keep it (weights/stored_host_facts.h). All is thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "base/result.h"
#include "base/sha256.h"
#include "drivers/cpu/platform/build_identity.h"
#include "drivers/cpu/platform/kernel_traits.h"

namespace hearth::cpu {

// Which kernel families are wrong here. Found out once for the process.
const Result<SelfTestResult>& selfTest();

// What packed weights depend on besides the model. Found out once for the process.
const Result<BuildIdentity>& buildIdentity();

// Products of ours that read what XNNPACK packs, if it packs as they expect.
enum class PackedPanels { kFloat, kInt8, kHybrid };
inline constexpr size_t kPackedPanels = 3;

// What `probe` says, which is asked once for the process.
bool readsPackings(PackedPanels product, bool (*probe)());

// Facts that another process with the same driver, XNNPACK and CPU found out.
struct HostFacts {
  std::optional<KernelTraits> traits;         // of the self-test
  std::optional<base::Sha256Digest> packing;  // of the build identity
  std::optional<std::array<bool, kPackedPanels>> products;
};

// Whether this process knows its self-test and build identity.
bool knowsHostFacts();

// Takes what this process does not know.
void adoptHostFacts(const HostFacts& facts);

// Whether the store that was asked last has all facts; sets it. False again once this process finds
// out one by itself.
bool exchangeHostFactsStored(bool isStored);

}  // namespace hearth::cpu
