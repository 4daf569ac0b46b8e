// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/platform/host_facts.h"

#include <array>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "base/immortal.h"
#include "base/mutex.h"
#include "base/trace.h"

namespace hearth::cpu {
namespace {

struct Host {
  base::Mutex mutex;
  // Never changed once set: callers hold references.
  std::optional<Result<SelfTestResult>> tested;
  std::optional<Result<BuildIdentity>> build;
  std::array<std::optional<bool>, kPackedPanels> products;
  bool isStored = false;  // whether the store that was last asked has all facts
};

Host& host() {
  static constinit base::Immortal<Host> known;
  return known.get();
}

// Throws for a lack of memory, so that the fact is determined again later.
template <typename T>
Result<T> rememberable(Result<T> found) {
  if (!found && found.error().code() == ErrorCode::kOutOfMemory) throw std::bad_alloc();
  return found;
}

// The fact, which `find` determines the first time.
template <typename T>
const Result<T>& remembered(std::optional<Result<T>>& fact, Result<T> (*find)()) {
  const std::lock_guard lock(host().mutex);
  if (!fact) {
    fact = rememberable(find());
    host().isStored = false;
  }
  return *fact;
}

}  // namespace

const Result<SelfTestResult>& selfTest() {
  return remembered(host().tested, runSelfTest);
}

const Result<BuildIdentity>& buildIdentity() {
  return remembered(host().build, findBuildIdentity);
}

bool readsPackings(PackedPanels product, bool (*probe)()) {
  const auto index = static_cast<size_t>(product);
  {
    const std::lock_guard lock(host().mutex);
    if (const std::optional<bool> known = host().products[index]) return *known;
  }
  const base::TraceSpan span("start", "probe packings");
  const bool reads = probe();
  const std::lock_guard lock(host().mutex);
  host().products[index] = reads;
  return reads;
}

bool knowsHostFacts() {
  const std::lock_guard lock(host().mutex);
  return host().tested && host().build;
}

void adoptHostFacts(const HostFacts& facts) {
  const std::lock_guard lock(host().mutex);
  if (facts.traits && !host().tested) host().tested = SelfTestResult(*facts.traits);
  if (facts.packing && !host().build) host().build = buildIdentityWith(*facts.packing);
  if (facts.products)
    for (size_t i = 0; i < kPackedPanels; ++i) host().products[i] = (*facts.products)[i];
}

bool exchangeHostFactsStored(bool isStored) {
  const std::lock_guard lock(host().mutex);
  return std::exchange(host().isStored, isStored);
}

}  // namespace hearth::cpu
