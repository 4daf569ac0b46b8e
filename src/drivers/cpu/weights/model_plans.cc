// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/model_plans.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/wall_clock.h"

namespace hearth::cpu {
namespace {

constexpr std::string_view kPackedFor = "packed for ";

// The details in the description of each plan.
std::string targetWords(const PlanKeys& keys) {
  return std::string(kPackedFor) + keys.target();
}

// Whether a plan's details may be shown in a report: a bundle may come from anybody.
bool isTargetWords(std::string_view details) {
  constexpr size_t kMost = 400;
  return details.starts_with(kPackedFor) && details.size() <= kMost &&
         std::ranges::all_of(details, [](char c) { return c >= ' ' && c <= '~'; });
}

class PlansInWeightStore final : public ModelPlans {
 public:
  using ModelPlans::ModelPlans;

  std::optional<PlanRecord> record() const override {
    const auto found = store_->findPlan(keys_.record());
    return found ? PlanRecord::parse((*found)->bytes()) : PlanRecord();
  }

  std::optional<KnownPackings> packings() const override {
    const auto found = store_->findPlan(keys_.packings());
    return found ? KnownPackings::parse((*found)->bytes()) : KnownPackings();
  }

  cache::StoreStatus addPackings(const KnownPackings& packings,
                                 const std::string& model) const override {
    const KnownPackings older = *this->packings();
    KnownPackings all = packings;
    all.addOlder(older);
    const std::vector<uint8_t> bytes = all.encoded();
    if (bytes == older.encoded()) return {};
    const auto written = store_->publishPlan(keys_.packings(), bytes, {},
                                             {model, "hearth-cpu packings", base::wallClock(), ""});
    if (!written) return std::unexpected(written.error());
    return {};
  }

  cache::StoreResult<cache::PlanRef> publish(const PlanDraft& draft,
                                             const base::Sha256Digest& content,
                                             const std::string& model) const override {
    return write(draft, content, model);
  }

  cache::StoreStatus addToRecord(const base::Sha256Digest& content,
                                 const std::string& model) const override {
    PlanRecord all = *record();
    if (!all.add(keys_.origin(content))) return {};
    const auto written = store_->publishPlan(keys_.record(), all.encoded(), {},
                                             {model, "hearth-cpu record", base::wallClock(), ""});
    if (!written) return std::unexpected(written.error());
    return {};
  }

 private:
  cache::PlanKey keyOf(const base::Sha256Digest& content) const override {
    return keys_.plan(content);
  }
};

class PlansInBundle final : public ModelPlans {
 public:
  using ModelPlans::ModelPlans;

  std::optional<PlanRecord> record() const override { return std::nullopt; }
  std::optional<KnownPackings> packings() const override { return std::nullopt; }
  cache::StoreStatus addPackings(const KnownPackings&, const std::string&) const override {
    return {};
  }

  cache::StoreResult<cache::PlanRef> publish(const PlanDraft& draft,
                                             const base::Sha256Digest& content,
                                             const std::string& model) const override {
    if (const auto present = find(content)) {
      PlanDraft all = draft;
      all.addOthers(**present);
      auto plan = write(all, content, model);
      if (plan && *plan != nullptr) return plan;
      // Segments of the other signatures may be missing or wrong: the plan is written without them.
    }
    return write(draft, content, model);
  }

  cache::StoreStatus addToRecord(const base::Sha256Digest&, const std::string&) const override {
    return {};
  }

 private:
  cache::PlanKey keyOf(const base::Sha256Digest& content) const override {
    return keys_.bundle(content);
  }
};

}  // namespace

bool ModelPlans::arePossibleIn(const cache::SegmentStore& store) {
  return store.planCapacity() != cache::PlanCapacity::kNone;
}

std::unique_ptr<ModelPlans> ModelPlans::in(std::shared_ptr<cache::SegmentStore> store,
                                           const PlanKeys& keys) {
  switch (store->planCapacity()) {
    case cache::PlanCapacity::kMany:
      return std::make_unique<PlansInWeightStore>(std::move(store), keys);
    case cache::PlanCapacity::kOne:
      return std::make_unique<PlansInBundle>(std::move(store), keys);
    case cache::PlanCapacity::kNone:
      break;
  }
  return nullptr;
}

cache::StoreResult<cache::PlanRef> ModelPlans::find(const base::Sha256Digest& content) const {
  return store_->findPlan(keyOf(content));
}

std::string ModelPlans::otherTarget() const {
  const std::optional<cache::PlanDescription> held = store_->heldPlan();
  if (!held || held->details == targetWords(keys_)) return "";
  return isTargetWords(held->details) ? held->details : "";
}

cache::StoreResult<cache::PlanRef> ModelPlans::write(const PlanDraft& draft,
                                                     const base::Sha256Digest& content,
                                                     const std::string& model) const {
  return store_->publishPlan(keyOf(content), draft.plan().encoded(), draft.keys(),
                             {model, "hearth-cpu", base::wallClock(), targetWords(keys_)});
}

}  // namespace hearth::cpu
