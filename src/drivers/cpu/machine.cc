// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/machine.h"

#include <mutex>
#include <optional>

#include "base/trace.h"

namespace hearth::cpu {
namespace {

// Of a remembered self-test: a digest's first bytes.
constexpr uint8_t kTestedMark = 1;
constexpr uint8_t kGuardOneRowTail = 1;
constexpr uint8_t kAvoidOneRowTail = 2;

struct Machine {
  std::mutex mutex;
  // Never changed once they are there: others hold references.
  std::optional<Result<SelfTestResult>> tested;
  std::optional<Result<BuildIdentity>> build;
  bool isRemembered = false;  // by the store that was asked last
};

// Never destroyed: threads may still prepare models while the process exits.
Machine& machine() {
  static Machine* const known = new Machine;
  return *known;
}

base::Sha256Digest factKey(std::string_view fact, const base::Sha256Digest& processor) {
  base::Sha256 hash;
  hash.update(fact.data(), fact.size());
  hash.update(processor);
  return hash.finish();
}

base::Sha256Digest testedKey(const base::Sha256Digest& processor) {
  return factKey("hearth-cpu self-test", processor);
}
base::Sha256Digest packingKey(const base::Sha256Digest& processor) {
  return factKey("hearth-cpu packing", processor);
}

}  // namespace

const Result<SelfTestResult>& selfTest() {
  const std::lock_guard lock(machine().mutex);
  std::optional<Result<SelfTestResult>>& tested = machine().tested;
  if (!tested) {
    tested = runSelfTest();
    machine().isRemembered = false;
  }
  return *tested;
}

const Result<BuildIdentity>& buildIdentity() {
  const std::lock_guard lock(machine().mutex);
  std::optional<Result<BuildIdentity>>& build = machine().build;
  if (!build) {
    build = findBuildIdentity();
    machine().isRemembered = false;
  }
  return *build;
}

void recallMachine(cache::SegmentStore& store) {
  const std::lock_guard lock(machine().mutex);
  std::optional<Result<SelfTestResult>>& tested = machine().tested;
  std::optional<Result<BuildIdentity>>& build = machine().build;
  if (tested && build) return;
  const base::TraceSpan span("start", "recall the machine");
  const auto processor = processorIdentity();
  if (!processor) return;
  const auto test = store.recall(testedKey(*processor));
  const auto packing = store.recall(packingKey(*processor));
  const bool isTested = test && (*test)[0] == kTestedMark;
  if (isTested && !tested) {
    KernelTraits traits;
    traits.guardInt8OneRowTail = ((*test)[1] & kGuardOneRowTail) != 0;
    traits.avoidInt8OneRowTail = ((*test)[1] & kAvoidOneRowTail) != 0;
    tested = SelfTestResult(traits);
  }
  if (packing && !build) build = buildIdentityWith(*packing);
  machine().isRemembered = isTested && packing;
}

void rememberMachine(const std::shared_ptr<cache::SegmentStore>& store) {
  {
    const std::lock_guard lock(machine().mutex);
    if (std::exchange(machine().isRemembered, true)) return;
  }
  // What nobody asked for yet is found out now, for the next process, off this one's path.
  store->afterPublishing([weak = std::weak_ptr(store)] {
    const auto processor = processorIdentity();
    const auto known = weak.lock();
    if (!processor || known == nullptr) return;
    if (const Result<SelfTestResult>& tested = selfTest()) {
      base::Sha256Digest fact{kTestedMark};
      if (tested->traits.guardInt8OneRowTail) fact[1] |= kGuardOneRowTail;
      if (tested->traits.avoidInt8OneRowTail) fact[1] |= kAvoidOneRowTail;
      known->remember(testedKey(*processor), fact);
    }
    if (const Result<BuildIdentity>& build = buildIdentity())
      known->remember(packingKey(*processor), build->packing);
    const std::lock_guard lock(machine().mutex);
    machine().isRemembered = true;
  });
}

}  // namespace hearth::cpu
