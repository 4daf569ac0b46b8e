// SPDX-License-Identifier: Apache-2.0
// What this process knows about the machine it runs on. Finding it out takes milliseconds, most of
// a start from the store, so a store keeps it for the next process.
#pragma once

#include <cstddef>
#include <memory>

#include "cache/segment_store.h"
#include "drivers/cpu/build_identity.h"
#include "drivers/cpu/self_test.h"

namespace hearth::cpu {

// Which kernel families are wrong here. Found out once for the process; thread-safe.
const Result<SelfTestResult>& selfTest();

// What packed weights depend on besides the model. The same.
const Result<BuildIdentity>& buildIdentity();

// Products of ours that read what XNNPACK packs, if it packs as they expect.
enum class PackedProduct { kFloat, kInt8, kHybrid };
inline constexpr size_t kPackedProducts = 3;

// What `probe` says, which is asked once for the process. The same.
bool readsPackings(PackedProduct product, bool (*probe)());

// Takes all of these from the store, if a process with the same driver, XNNPACK and CPU left them
// there and they are not known yet.
void recallMachine(cache::SegmentStore& store);

// Leaves there what this process found out, in the background. Nothing happens when the store had
// it.
void rememberMachine(const std::shared_ptr<cache::SegmentStore>& store);

}  // namespace hearth::cpu
