// SPDX-License-Identifier: Apache-2.0
// How a bundle store keeps facts.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/wall_clock.h"
#include "cache/bundle/bundle_parts.h"
#include "cache/bundle/bundle_store.h"
#include "cache/store/store_facts.h"

namespace hearth::cache {
namespace {

base::Sha256Digest factNote(std::string_view key) {
  return base::Sha256::of({reinterpret_cast<const uint8_t*>(key.data()), key.size()});
}

}  // namespace

std::optional<std::vector<uint8_t>> BundleStore::recall(std::string_view key) {
  {
    const std::lock_guard lock(parts_->mutex);
    if (const auto fact = parts_->newFacts.find(key); fact != parts_->newFacts.end())
      return fact->second.value;
    if (parts_->current != nullptr)
      if (const BlobMap& facts = parts_->current->info.content.facts; facts.contains(key))
        return facts.find(key)->second.value;
  }
  const std::optional<base::Sha256Digest> note = parts_->notes->fact(factNote(key));
  if (!note) return std::nullopt;
  return std::vector<uint8_t>(note->begin(), note->end());
}

void BundleStore::remember(std::span<const Fact> facts) {
  BundleParts& parts = *parts_;
  if (parts.options.mode == StoreMode::kReadOnly) return;
  bool isMore = false;
  for (const Fact& fact : facts) {
    base::Sha256Digest note{};
    if (fact.value.size() == note.size()) std::ranges::copy(fact.value, note.begin());
    const std::lock_guard lock(parts.mutex);
    const bool isThere =
        parts.newFacts.contains(fact.key) ||
        (parts.current != nullptr && parts.current->info.content.facts.contains(fact.key));
    if (note != base::Sha256Digest{} && !isThere) {
      parts.notes->rememberFact(factNote(fact.key), note);
    } else if (!fact.key.empty() && fact.key.size() <= kFactLimits.maxKeyBytes &&
               !fact.value.empty() && fact.value.size() <= kFactLimits.maxValueBytes) {
      parts.newFacts.insert_or_assign(fact.key, Blob{fact.value, base::wallClock()});
      isMore = true;
    }
  }
  if (isMore) afterPublishing([this] { writeFacts(); });
}

// The facts for a new file that replaces `old`: those of `old` if it has the same plan, and the new
// ones. parts_->mutex is held.
BlobMap BundleStore::factsBeside(const BundleFile* old, const PlanKey& key) {
  BlobTable table(kFactLimits, {});
  if (old != nullptr && old->info.content.plan.key == key)
    for (const auto& [name, fact] : old->info.content.facts) table.set(name, fact.value, fact.used);
  for (const auto& [name, fact] : parts_->newFacts) table.set(name, fact.value, fact.used);
  return table.blobs();
}

// Replaces the bundle by one that also has the new facts. A plan that was published meanwhile has
// already written them.
void BundleStore::writeFacts() {
  BundleParts& parts = *parts_;
  {
    const std::lock_guard lock(parts.mutex);
    if (parts.newFacts.empty() || parts.current == nullptr) return;
  }
  auto started = writer();
  if (!started) return base::logInfo("Facts are not kept: {}", started.error().message);
  std::shared_ptr<BundleWriter> own = std::move(*started);
  // The writer's lock is held: no other process adds to the plan from here on.
  (void)refresh();
  PlanRef plan;
  {
    const std::lock_guard lock(parts.mutex);
    // Any other user of the writer publishes a plan, and the facts with it.
    if (own.use_count() == 2 && own->isEmpty() && parts.current != nullptr &&
        !parts.current->isDropped())
      plan = parts.current->plan;
  }
  if (plan == nullptr) return stopIfUnused(std::move(own));
  const auto written =
      publishPlan(plan->content().key, plan->bytes(), plan->segments(), plan->description());
  if (written) return;
  base::logInfo("Facts are not kept: {}", written.error().message);
  const std::lock_guard lock(parts.mutex);
  // The copies are of no use to others.
  if (parts.writer == own && own.use_count() == 2) parts.writer = nullptr;
}

}  // namespace hearth::cache
