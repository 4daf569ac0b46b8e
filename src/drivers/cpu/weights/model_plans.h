// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/sha256.h"
#include "cache/store/segment_store.h"
#include "drivers/cpu/weights/known_packings.h"
#include "drivers/cpu/weights/plan_draft.h"
#include "drivers/cpu/weights/plan_keys.h"
#include "drivers/cpu/weights/plan_record.h"

namespace hearth::cpu {

// The plans of one model in a store, and the record of what they were made from. What differs
// between kinds of store is decided here: a weight store has a plan for each signature, a record of
// the model's structure, and a list of packings; a bundle has one plan for all signatures and needs
// neither record nor list, since it has no other model's. Thread-safe.
class ModelPlans {
 public:
  // Whether what is published in the store is there for later starts.
  static bool arePossibleIn(const cache::SegmentStore& store);

  // `keys` outlives the result. Null where no plans are possible.
  static std::unique_ptr<ModelPlans> in(std::shared_ptr<cache::SegmentStore> store,
                                        const PlanKeys& keys);

  ModelPlans(std::shared_ptr<cache::SegmentStore> store, const PlanKeys& keys)
      : store_(std::move(store)), keys_(keys) {}
  virtual ~ModelPlans() = default;

  // None where the store keeps no records. An empty one: no model of this structure was ever
  // packed.
  virtual std::optional<PlanRecord> record() const = 0;

  // What models with constants of the same sizes have packed. None where the store keeps no list.
  virtual std::optional<KnownPackings> packings() const = 0;
  // Adds to that list, if there is one.
  virtual cache::StoreStatus addPackings(const KnownPackings& packings,
                                         const std::string& model) const = 0;

  // The plan for this content of the model's pools. Errors as SegmentStore::findPlan().
  cache::StoreResult<cache::PlanRef> find(const base::Sha256Digest& content) const;

  // Where the store keeps one plan and that was packed for another kind of CPU, the words for it:
  // "packed for arm64 with dotprod". Empty otherwise, and where the plan does not say.
  std::string otherTarget() const;

  // Publishes a plan for this content, whose segments are published. It keeps what the store's plan
  // has for other signatures. `model` is a name for people. Errors as SegmentStore::publishPlan().
  virtual cache::StoreResult<cache::PlanRef> publish(const PlanDraft& draft,
                                                     const base::Sha256Digest& content,
                                                     const std::string& model) const = 0;

  // Adds this build, these options and this content to the record, if there is one.
  virtual cache::StoreStatus addToRecord(const base::Sha256Digest& content,
                                         const std::string& model) const = 0;

 protected:
  virtual cache::PlanKey keyOf(const base::Sha256Digest& content) const = 0;
  cache::StoreResult<cache::PlanRef> write(const PlanDraft& draft,
                                           const base::Sha256Digest& content,
                                           const std::string& model) const;

  const std::shared_ptr<cache::SegmentStore> store_;
  const PlanKeys& keys_;
};

}  // namespace hearth::cpu
