// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/stored_host_facts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/trace.h"
#include "drivers/cpu/platform/host_facts.h"
#include "drivers/cpu/weights/xnnpack_panels.h"

namespace hearth::cpu {
namespace {

// The fact of a self-test begins with this mark and a byte of the flags below. All facts have the
// size of a digest, so that a bundle takes them as notes.
constexpr uint8_t kTestedMark = 1;
enum Flag : uint8_t { kGuardOneRowTail = 1, kAvoidOneRowTail = 2 };
// Its next bytes are this mark and a bit for each product of ours that reads XNNPACK's packings.
// With the mark 1 the third bit was for AVX-512 VNNI alone, and with 1 and 2 there was no fourth.
constexpr uint8_t kProductsMark = 3;

// The key of a fact: its name, a zero byte, and the digest of all that the fact depends on.
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

}  // namespace

void recallHostFacts(cache::SegmentStore& store) {
  if (knowsHostFacts()) return;
  const base::TraceSpan span("start", "recall the host's facts");
  const auto processor = processorIdentity();
  if (!processor) return;
  HostFacts facts;
  const auto test = recallDigest(store, testedKey(*processor));
  facts.packing = recallDigest(store, packingKey(*processor));
  const bool isTested = test && (*test)[0] == kTestedMark;
  if (isTested) {
    facts.traits.emplace();
    facts.traits->guardInt8OneRowTail = ((*test)[1] & kGuardOneRowTail) != 0;
    facts.traits->avoidInt8OneRowTail = ((*test)[1] & kAvoidOneRowTail) != 0;
  }
  if (isTested && (*test)[2] == kProductsMark) {
    facts.products.emplace();
    for (size_t i = 0; i < kPackedPanels; ++i) (*facts.products)[i] = ((*test)[3] >> i & 1) != 0;
  }
  adoptHostFacts(facts);
  exchangeHostFactsStored(facts.products && facts.packing);
}

void rememberHostFacts(const std::shared_ptr<cache::SegmentStore>& store) {
  if (exchangeHostFactsStored(true)) return;
  // This also determines what this process has not needed yet, for the next process, off the start
  // path of this one.
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
      const bool products[kPackedPanels] = {hasF32Gemm(), hasQs8Gemm(),
                                            hasQd8Gemm() || hasAvx2Qd8Panels(), hasAmxGemm()};
      for (size_t i = 0; i < kPackedPanels; ++i)
        fact[3] |= static_cast<uint8_t>(products[i] ? 1 << i : 0);
      facts.push_back(factOf(testedKey(*processor), fact));
    }
    if (const Result<BuildIdentity>& build = buildIdentity())
      facts.push_back(factOf(packingKey(*processor), build->packing));
    known->remember(facts);
    exchangeHostFactsStored(true);
  });
}

}  // namespace hearth::cpu
