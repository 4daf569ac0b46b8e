// SPDX-License-Identifier: Apache-2.0
// What this process knows about the host. Determining these facts takes milliseconds, which is most
// of a start from the store, so stores keep them (weights/stored_host_facts.h). All functions are
// thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "base/result.h"
#include "base/sha256.h"
#include "drivers/cpu/platform/build_identity.h"
#include "drivers/cpu/platform/kernel_traits.h"

namespace hearth::cpu {

// Which kernel families go wrong on this CPU. Determined once for the process.
const Result<SelfTestResult>& selfTest();

// What packed weights depend on besides the model. Determined once for the process.
const Result<BuildIdentity>& buildIdentity();

// Matrix products of ours that read XNNPACK's packings, if these have the expected layout.
enum class PackedPanels { kFloat, kInt8, kHybrid, kInt8Tiles };
inline constexpr size_t kPackedPanels = 4;

// Whether a product can read XNNPACK's packings: the result of `probe`, which is called only if the
// answer is not known yet.
bool readsPackings(PackedPanels product, bool (*probe)());

// Facts that another process with the same driver, XNNPACK and CPU determined.
struct HostFacts {
  std::optional<KernelTraits> traits;         // of the self-test
  std::optional<base::Sha256Digest> packing;  // of the build identity
  std::optional<std::array<bool, kPackedPanels>> products;
};

// Whether this process knows its self-test and build identity.
bool knowsHostFacts();

// Takes over the facts that this process does not know.
void adoptHostFacts(const HostFacts& facts);

// Sets whether the store that was last asked has all facts, and returns the former value. It
// becomes false when this process determines self-test or build identity itself.
bool exchangeHostFactsStored(bool isStored);

}  // namespace hearth::cpu
