// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/machine.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/immortal.h"
#include "base/mutex.h"
#include "base/trace.h"
#include "drivers/cpu/float_product.h"
#include "drivers/cpu/hybrid_product.h"
#include "drivers/cpu/int8_product.h"

namespace hearth::cpu {
namespace {

// Of a remembered self-test: its first bytes. All facts have the size of a digest, so that a bundle
// takes them as notes.
constexpr uint8_t kTestedMark = 1;
constexpr uint8_t kGuardOneRowTail = 1;
constexpr uint8_t kAvoidOneRowTail = 2;
// Its next bytes: this mark, and a bit for each product that reads XNNPACK's packings.
constexpr uint8_t kProductsMark = 1;

struct Machine {
  base::Mutex mutex;
  // Never changed once they are there: others hold references.
  std::optional<Result<SelfTestResult>> tested;
  std::optional<Result<BuildIdentity>> build;
  std::array<std::optional<bool>, kPackedProducts> products;
  bool isRemembered = false;  // by the store that was asked last
};

Machine& machine() {
  static constinit base::Immortal<Machine> known;
  return known.get();
}

// A name and, behind a zero byte, all that the fact depends on.
std::string factKey(std::string_view fact, const base::Sha256Digest& processor) {
  std::string key(fact);
  key += '\0';
  key.append(processor.begin(), processor.end());
  return key;
}

std::string testedKey(const base::Sha256Digest& processor) {
  return factKey("hearth-cpu self-test", processor);
}
std::string packingKey(const base::Sha256Digest& processor) {
  return factKey("hearth-cpu packing", processor);
}

cache::Fact factOf(std::string key, const base::Sha256Digest& value) {
  return {std::move(key), {value.begin(), value.end()}};
}

std::optional<base::Sha256Digest> recallDigest(cache::SegmentStore& store, std::string_view key) {
  const std::optional<std::vector<uint8_t>> value = store.recall(key);
  base::Sha256Digest digest;
  if (!value || value->size() != digest.size()) return std::nullopt;
  std::ranges::copy(*value, digest.begin());
  return digest;
}

// What failed for want of memory has to be found out once more.
template <typename T>
Result<T> rememberable(Result<T> found) {
  if (!found && found.error().code() == ErrorCode::kOutOfMemory) throw std::bad_alloc();
  return found;
}

}  // namespace

const Result<SelfTestResult>& selfTest() {
  const std::lock_guard lock(machine().mutex);
  std::optional<Result<SelfTestResult>>& tested = machine().tested;
  if (!tested) {
    tested = rememberable(runSelfTest());
    machine().isRemembered = false;
  }
  return *tested;
}

const Result<BuildIdentity>& buildIdentity() {
  const std::lock_guard lock(machine().mutex);
  std::optional<Result<BuildIdentity>>& build = machine().build;
  if (!build) {
    build = rememberable(findBuildIdentity());
    machine().isRemembered = false;
  }
  return *build;
}

bool readsPackings(PackedProduct product, bool (*probe)()) {
  const auto index = static_cast<size_t>(product);
  {
    const std::lock_guard lock(machine().mutex);
    if (const std::optional<bool> known = machine().products[index]) return *known;
  }
  const base::TraceSpan span("start", "probe packings");
  const bool reads = probe();
  const std::lock_guard lock(machine().mutex);
  machine().products[index] = reads;
  return reads;
}

void recallMachine(cache::SegmentStore& store) {
  const std::lock_guard lock(machine().mutex);
  std::optional<Result<SelfTestResult>>& tested = machine().tested;
  std::optional<Result<BuildIdentity>>& build = machine().build;
  if (tested && build) return;
  const base::TraceSpan span("start", "recall the machine");
  const auto processor = processorIdentity();
  if (!processor) return;
  const auto test = recallDigest(store, testedKey(*processor));
  const auto packing = recallDigest(store, packingKey(*processor));
  const bool isTested = test && (*test)[0] == kTestedMark;
  if (isTested && !tested) {
    KernelTraits traits;
    traits.guardInt8OneRowTail = ((*test)[1] & kGuardOneRowTail) != 0;
    traits.avoidInt8OneRowTail = ((*test)[1] & kAvoidOneRowTail) != 0;
    tested = SelfTestResult(traits);
  }
  if (packing && !build) build = buildIdentityWith(*packing);
  const bool hasProducts = isTested && (*test)[2] == kProductsMark;
  for (size_t i = 0; hasProducts && i < kPackedProducts; ++i)
    machine().products[i] = ((*test)[3] >> i & 1) != 0;
  machine().isRemembered = hasProducts && packing;
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
    std::vector<cache::Fact> facts;
    if (const Result<SelfTestResult>& tested = selfTest()) {
      base::Sha256Digest fact{kTestedMark};
      if (tested->traits.guardInt8OneRowTail) fact[1] |= kGuardOneRowTail;
      if (tested->traits.avoidInt8OneRowTail) fact[1] |= kAvoidOneRowTail;
      fact[2] = kProductsMark;
      const bool products[kPackedProducts] = {hasFloatProduct(), hasInt8Product(),
                                              hasHybridProduct()};
      for (size_t i = 0; i < kPackedProducts; ++i)
        fact[3] |= static_cast<uint8_t>(products[i] ? 1 << i : 0);
      facts.push_back(factOf(testedKey(*processor), fact));
    }
    if (const Result<BuildIdentity>& build = buildIdentity())
      facts.push_back(factOf(packingKey(*processor), build->packing));
    known->remember(facts);
    const std::lock_guard lock(machine().mutex);
    machine().isRemembered = true;
  });
}

}  // namespace hearth::cpu
