// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/weight_session.h"

#include <algorithm>
#include <utility>

#include "base/caught.h"
#include "base/format.h"
#include "base/log.h"
#include "base/trace.h"
#include "drivers/cpu/platform/host_facts.h"
#include "drivers/cpu/weights/constant_tags.h"
#include "drivers/cpu/weights/in_place_constants.h"
#include "drivers/cpu/weights/known_packings.h"
#include "drivers/cpu/weights/model_name.h"
#include "drivers/cpu/weights/plan_draft.h"
#include "drivers/cpu/weights/segment_prefetcher.h"
#include "drivers/cpu/weights/stored_host_facts.h"
#include "drivers/cpu/weights/stored_packing.h"
#include "hal/start_reason.h"

namespace hearth::cpu {
namespace {

namespace start_reason = hal::start_reason;

// How often a segment that goes wrong in the store is written again. A disk that loses all that is
// written to it would otherwise have the weights packed every few seconds as long as the model
// lives.
constexpr uint64_t kMostRepairsWritten = 3;

// Below this many bytes of constants a start from the store takes longer than packing.
constexpr uint64_t kWorthKeeping = uint64_t{64} << 10;

uint64_t constantBytes(const graph::Model& model) {
  uint64_t bytes = 0;
  for (const graph::Subgraph& subgraph : model.subgraphs)
    for (const graph::Operand& operand : subgraph.operands)
      if (operand.isConstant()) bytes += operand.location.length;
  return bytes;
}

}  // namespace

struct TakenSegments {
  TakenSegments(std::shared_ptr<const graph::Model> model,
                std::shared_ptr<cache::SegmentStore> store, unsigned threads)
      : tags(std::move(model), std::move(store), threads) {}

  ConstantTags tags;  // of the model that takes them
  base::Mutex mutex;
  struct Entry {
    std::shared_ptr<PackedSegment> segment;
    std::optional<bool> isRight;  // whether the bytes have the digest that names them
  };
  std::map<cache::SegmentKey, Entry> segments;
  std::vector<cache::SegmentRef> unread;  // those that are to be prefetched
};

WeightSession::WeightSession(std::shared_ptr<cache::SegmentStore> store,
                             std::shared_ptr<const graph::Model> model,
                             std::shared_ptr<PackedWeights> weights,
                             const hal::PrepareOptions& options, unsigned threads)
    : store_(std::move(store)),
      model_(std::move(model)),
      weights_(std::move(weights)),
      options_(options),
      threads_(threads),
      publisher_(store_, outcome_) {}

uint64_t WeightSession::bytesWorthKeeping(const graph::Model& model) {
  const uint64_t bytes = constantBytes(model);
  return bytes >= kWorthKeeping ? bytes : 0;
}

// Finds out what the keys are made from. False when the model has no place in the store; the
// outcome then says why.
bool WeightSession::identify() {
  if (!isWorthKeeping(*model_)) {
    outcome_->setUncached(start_reason::kTooSmall);
    return false;
  }
  if (!ModelPlans::arePossibleIn(*store_)) {
    outcome_->setUncached(store_->writability());
    return false;
  }
  const Result<BuildIdentity>& build = buildIdentity();
  if (!build) {
    outcome_->setUncached(cache::StoreReason::kOff, build.error().toString());
    return false;
  }
  keys_.emplace(*model_, options_, *build, threads_);
  plans_ = ModelPlans::in(store_, *keys_);
  contents_.emplace(*model_, *store_, threads_);
  return true;
}

hal::StartReport WeightSession::explain() {
  isOnlyAsked_ = true;
  if (identify()) {
    findPlan();
  } else if (store_->writability().reason == cache::StoreReason::kGone && isWorthKeeping(*model_)) {
    outcome_->setCold(start_reason::kNoStoreYet);
  }
  hal::StartReport report;
  describe(&report);
  return report;
}

template <typename Body>
void WeightSession::guarded(Body body) noexcept {
  if (const Status status = base::caught(body); !status) giveUp(status.error());
}

void WeightSession::giveUp(const Error& error) noexcept {
  hasGivenUp_ = true;
  dropTicket();
  outcome_->setUncached(error.code() == ErrorCode::kOutOfMemory ? cache::StoreReason::kNoMemory
                                                                : cache::StoreReason::kIoError,
                        error.message());
}

void WeightSession::dropTicket() {
  std::shared_ptr<cache::BuildTicket> dropped;
  const std::lock_guard lock(mutex_);
  dropped.swap(ticket_);
}

void WeightSession::load(bool publishesLast) {
  guarded([&] { tryToLoad(publishesLast); });
}

void WeightSession::tryToLoad(bool publishesLast) {
  const base::TraceSpan span("start", "load packed weights");
  if (!identify() || findPlan()) return;
  const std::string reason = outcome_->reason();
  const cache::StoreFailure readOnly = hindrance();
  if (readOnly.reason != cache::StoreReason::kNone) return outcome_->setColdButUncached(readOnly);
  // One process builds this model's plan, and the others wait for it.
  ticket_ = std::make_shared<cache::BuildTicket>(store_->acquire(keys_->buildLock()));
  if (findPlan()) {
    ticket_.reset();
    return;
  }
  const Status prepared = contents_->prepareToPack();
  noteHashed();
  if (!prepared) {
    ticket_.reset();
    return outcome_->setUncached(cache::StoreReason::kIoError, prepared.error().toString());
  }
  outcome_->setCold(
      reason);  // a corrupt object is removed when it is found: the second look misses it
  weights_->noteSources();
  takeFromOthers();
  isKept_ = true;
  publishesLast_ = publishesLast;
  if (publishesLast) return;
  weights_->onPacked(
      [weak = weak_from_this()](const std::shared_ptr<PackedSegment>& packed, size_t size) {
        // The private memory is freed before the next weights are packed into more of it.
        if (const auto self = weak.lock(); self && !self->hasGivenUp_)
          self->guarded([&] { self->publisher_.publish(packed, size, true); });
      });
  weights_->writeParts(
      {.start = [weak = weak_from_this()](size_t size) -> std::unique_ptr<cache::SegmentWriter> {
         const auto self = weak.lock();
         return self && !self->hasGivenUp_ ? self->store_->beginWriting(size) : nullptr;
       },
       .publish =
           [weak = weak_from_this()](const std::shared_ptr<PackedSegment>& packed,
                                     std::unique_ptr<cache::SegmentWriter> written) {
             if (const auto self = weak.lock())
               self->guarded([&] { self->publisher_.publish(packed, std::move(written)); });
           }});
}

// Lets creation calls take what another model, or this one for other shapes, packed from the same
// constants. Which these are shows in their bytes, so they are read; but only where models with
// constants of the same sizes were packed before.
void WeightSession::takeFromOthers() {
  std::optional<KnownPackings> known = plans_->packings();
  if (!known || known->empty()) return;
  taken_ = std::make_shared<TakenSegments>(model_, store_, threads_);
  weights_->takeFrom([store = store_, taken = taken_, packings = *std::move(known)](
                         WeightPlace place,
                         const PackingSource& source) -> std::optional<PackedPlace> {
    const auto content =
        source.content([&](const PackingSource::Range& range) { return taken->tags.of(range); });
    const KnownPackings::Entry* const entry = content ? packings.find(*content) : nullptr;
    if (entry == nullptr) return std::nullopt;
    const std::lock_guard lock(taken->mutex);
    TakenSegments::Entry& known = taken->segments[entry->segment];
    std::shared_ptr<PackedSegment>& segment = known.segment;
    if (segment == nullptr) {
      const cache::FoundSegment found = store->find(entry->segment);
      if (!found) return std::nullopt;
      // Not left to the prefetch of populate(): kernels that are built just in time take
      // segments later than that, and a prefetch may end before.
      store->checkFound();
      segment = std::make_shared<PackedSegment>(found.segment);
      taken->unread.push_back(found.segment);
    }
    // Others are packed from constants, and what is packed is stored for good.
    if (place.operation == WeightPlace::kConstants) {
      if (!known.isRight) known.isRight = segment->equalsItsKey();
      if (!*known.isRight) return std::nullopt;
    }
    if (entry->offset > segment->size() || entry->size > segment->size() - entry->offset)
      return std::nullopt;
    return PackedPlace{segment, entry->offset, entry->size, entry->seed};
  });
}

// Keeps the places of these packings for other models. A warm start does not know their sources.
void WeightSession::rememberPackings() {
  if (!weights_->notesSources()) return;
  ConstantTags tags(model_, store_, threads_);
  const std::map<WeightPlace, PackedPlace> places = weights_->places();
  KnownPackings known;
  for (const auto& [place, source] : weights_->sources()) {
    const auto packed = places.find(place);
    if (packed == places.end()) continue;
    const PackedPlace& own = packed->second;
    const cache::SegmentRef segment = own.segment->published();
    if (segment == nullptr) continue;
    if (const auto content =
            source->content([&](const PackingSource::Range& range) { return tags.of(range); }))
      known.add(*content, {segment->key(), own.offset, own.size, own.seed});
  }
  // The tags are of the bytes that were packed only if nothing has changed since.
  if (known.empty() || !contents_->confirm()) return;
  if (const auto added = plans_->addPackings(known, modelName(*model_)); !added)
    base::logInfo("Other models will not find what was packed of {}. {}", modelName(*model_),
                  added.error().message);
}

// Why nothing can be kept; kNone where it can. A full disk counts as writable: it may have room by
// the time of writing.
cache::StoreFailure WeightSession::hindrance() const {
  cache::StoreFailure why = store_->writability();
  return why.reason == cache::StoreReason::kNoSpace ? cache::StoreFailure{} : why;
}

// Finds the plan and presets its places. True when all places are preset; otherwise the outcome
// says why the start is cold.
bool WeightSession::findPlan() {
  std::optional<PlanRecord> known;
  if (!contents_->recall()) {
    // Reading all of the model pays only if a model of this structure was packed before.
    known = plans_->record();
    if (known && known->empty()) {
      outcome_->setCold(start_reason::kFirstOfModel);
      return false;
    }
    const Status read = contents_->look();
    noteHashed();
    if (!read) {
      outcome_->setCold(read.error().toString());
      return false;
    }
  }
  cache::StoreResult<cache::PlanRef> plan =
      cache::storeFail(cache::StoreReason::kAbsent, "The store has never seen these constants.");
  if (contents_->isKnown()) plan = plans_->find(contents_->digest());
  if (plan) {
    // Kept even where segments are missing: otherwise the store could evict those that are there
    // to make room for the missing ones.
    plan_ = *plan;
    return presetFrom(*plan_);
  }
  if (!known) known = plans_->record();
  const PlanRecord record = known ? *std::move(known) : PlanRecord();
  std::string reason = record.difference(keys_->origin(contents_->digest()));
  const bool isOther = plan.error().reason == cache::StoreReason::kOtherPlan;
  // Another architecture may not know the content by its tags, and then asks for no plan.
  const bool mayBeOther = isOther || plan.error().reason == cache::StoreReason::kAbsent;
  if (const std::string target = mayBeOther ? plans_->otherTarget() : ""; !target.empty()) {
    reason = base::formatText("the bundle is {}", target);
  } else if (isOther) {
    reason = start_reason::kOtherInBundle;
  } else if (plan.error().reason != cache::StoreReason::kAbsent) {
    reason = base::formatText("plan {}", cache::storeReasonName(plan.error().reason));
  } else if (reason.empty()) {
    reason = record.empty() ? start_reason::kFirstOfModel : start_reason::kEvicted;
  }
  outcome_->setCold(std::move(reason));
  return false;
}

bool WeightSession::presetFrom(const cache::LoadedPlan& plan) {
  Result<StoredPacking> found = loadStoredPacking(*store_, plan, keys_->graph());
  if (!found) {
    outcome_->setCold(start_reason::kPlanCorrupt);
    base::logWarn("{}", found.error().toString());
    return false;
  }
  if (!found->hasGraph) {
    outcome_->setCold(start_reason::kFirstOfSignature);
    return false;
  }
  outcome_->setMapped(found->bytes());
  if (!isOnlyAsked_) {
    // `done` refers to the store weakly: a store that is closed meanwhile must not be destroyed on
    // a prefetching thread.
    expectLookups(*model_);
    populate_ = pageIn(
        std::move(found->segments), [this] { readSmallConstantsAhead(*model_); },
        [weak = std::weak_ptr(store_)] {
          if (const auto store = weak.lock()) store->checkFound();
        });
  }
  presetPlaces(*found);
  isPartly_ = found->missing == cache::StoreReason::kNone && !found->isWhole;
  if (found->missing == cache::StoreReason::kAbsent) {
    outcome_->setCold(start_reason::kSegmentEvicted);
  } else if (found->missing != cache::StoreReason::kNone) {
    outcome_->setCold(base::formatText("segment {}", cache::storeReasonName(found->missing)));
  } else if (isPartly_) {
    outcome_->setCold(start_reason::kPlanPartly);
  } else {
    isKeptWhole_ = true;
    // To name the sources would take as long as to open the store and its segments.
    weights_->setAllPreset();
    outcome_->setWarm();
  }
  return isKeptWhole_;
}

// Nobody has checked these segments yet. What is packed is stored for good, so constants that it
// may be made from are compared with the digest of their segment first.
void WeightSession::presetPlaces(const StoredPacking& found) {
  const bool mayPack = found.missing != cache::StoreReason::kNone || !found.isWhole;
  std::map<std::shared_ptr<PackedSegment>, bool> areRight;
  for (const auto& [place, packed] : found.places) {
    if (mayPack && place.operation == WeightPlace::kConstants) {
      const auto [known, isNew] = areRight.try_emplace(packed.segment, false);
      if (isNew) known->second = packed.segment->equalsItsKey();
      if (!known->second) continue;
    }
    weights_->preset(place, packed);
  }
}

void WeightSession::populate() {
  std::function<void()> begin;
  {
    const std::lock_guard lock(mutex_);
    begin.swap(populate_);
  }
  if (!begin && taken_ != nullptr) {
    const std::lock_guard lock(taken_->mutex);
    if (!taken_->unread.empty()) begin = pageIn(std::exchange(taken_->unread, {}), [] {}, [] {});
  }
  if (begin) begin();
}

void WeightSession::noteHashed() {
  outcome_->setHashed(contents_->hashedBytes());
}

void WeightSession::publish() {
  guarded([&] { tryToPublish(); });
}

void WeightSession::tryToPublish() {
  if (keys_) rememberHostFacts(store_);
  outcome_->setRepacked(weights_->repackedBytes());
  isAllPacked_ = true;
  // Others had packed all of it.
  if (isKept_ && !hasGivenUp_ && weights_->packedBytes().empty() && weights_->takenBytes() != 0)
    outcome_->setWarm();
  if (hasGivenUp_ || (!isKept_ && !mendPlan())) return;
  publishPackings();
}

void WeightSession::finishLater() {
  store_->afterPublishing([self = shared_from_this()] { self->finish(); });
}

void WeightSession::publishAgain() {
  guarded([&] { tryToPublishAgain(); });
}

void WeightSession::tryToPublishAgain() {
  if (!keys_ || hindrance().reason != cache::StoreReason::kNone ||
      !SegmentPublisher::hasUnpublished(*weights_))
    return;
  publishPackings();
}

std::vector<uint8_t> WeightSession::recall(std::string_view kind) const {
  if (!keys_) return {};
  return store_->recall(keys_->fact(kind)).value_or(std::vector<uint8_t>());
}

void WeightSession::remember(std::string_view kind, std::vector<uint8_t> bytes) const {
  if (!keys_) return;
  const cache::Fact fact{keys_->fact(kind), std::move(bytes)};
  store_->remember({&fact, 1});
}

void WeightSession::onCorrupt(const CorruptionWatch::Handler& handler) {
  auto watch = std::make_unique<CorruptionWatch>(store_, *weights_, handler);
  const std::lock_guard lock(mutex_);
  watch_.swap(watch);
}

void WeightSession::repaired(const std::vector<std::shared_ptr<PackedSegment>>& segments) {
  uint64_t bytes = 0;
  for (const auto& segment : segments) bytes += segment->size();
  base::logWarn("{} bytes of packed weights of {} were wrong; they are packed anew.", bytes,
                modelName(*model_));
  outcome_->addRepaired(bytes);
  if (hindrance().reason != cache::StoreReason::kNone) return;
  guarded([&] {
    for (const auto& segment : segments) {
      if (segment->repairs() <= kMostRepairsWritten)
        publisher_.publish(segment, segment->size());
      else
        base::logWarn("A segment of {} went wrong {} times and is not written again.",
                      modelName(*model_), segment->repairs());
    }
    finishLater();
  });
}

// True when the plan that was taken for whole has to be written again, because places of it had a
// wrong size or because it lacks places that the operations read.
bool WeightSession::mendPlan() {
  if (!keys_ || !isWarm()) return false;
  const bool isWrong = weights_->droppedPresets() != 0;
  if (!isWrong && !SegmentPublisher::hasUnpublished(*weights_)) return false;
  if (isWrong)
    base::logWarn("The plan of {} names packed weights of a wrong size and is not used for them.",
                  modelName(*model_));
  const cache::StoreFailure readOnly = hindrance();
  // A start that only used what other models of this process packed remains warm.
  if (isWrong || !weights_->packedBytes().empty()) {
    outcome_->setCold(isWrong ? start_reason::kPlanCorrupt : start_reason::kPlanPartly);
    if (readOnly.reason != cache::StoreReason::kNone) outcome_->setColdButUncached(readOnly);
  }
  return readOnly.reason == cache::StoreReason::kNone;
}

// Publishes the packings that are not in the store, then the plan.
void WeightSession::publishPackings() {
  publisher_.publishAll(*weights_);
  finishLater();
}

// Writes the plan. Runs on a thread of the store when all segments are written.
void WeightSession::finish() {
  guarded([&] { tryToFinish(); });
}

void WeightSession::tryToFinish() {
  std::shared_ptr<cache::BuildTicket> release;
  {
    const std::lock_guard lock(mutex_);
    release.swap(ticket_);
  }
  // If the model changed, its digest is not that of the packed bytes, and no start may find these
  // packings under it.
  const Status confirmed = contents_->confirm();
  noteHashed();
  if (!confirmed && isKeptWhole_)
    return base::logInfo("What was packed of {} later than at its start is not kept. {}",
                         modelName(*model_), confirmed.error().message());
  if (!confirmed)
    return outcome_->setUncached(confirmed.error().code() == ErrorCode::kBadState
                                     ? cache::StoreReason::kChanged
                                     : cache::StoreReason::kIoError,
                                 confirmed.error().message());
  const PlanDraft draft(keys_->graph(), weights_->places(), isAllPacked_);
  if (draft.keys().empty()) return;
  // The disk is still full: the plan would lack the same places as the stored one.
  if (isPartly_ && !draft.plan().partly.empty() && hasNothingNew(draft.keys())) return;
  cache::StoreResult<cache::PlanRef> plan =
      plans_->publish(draft, contents_->digest(), modelName(*model_));
  if (!plan) return outcome_->setUncached(plan.error());
  {
    const std::lock_guard lock(mutex_);
    plan_ = std::move(*plan);
    isKeptWhole_ = draft.plan().partly.empty();
  }
  if (const auto written = plans_->addToRecord(contents_->digest(), modelName(*model_)); !written)
    outcome_->setUncached(written.error());
  rememberPackings();
}

// Whether the plan that was found names all of these segments.
bool WeightSession::hasNothingNew(std::span<const cache::SegmentKey> keys) const {
  const std::lock_guard lock(mutex_);
  return plan_ != nullptr && std::ranges::all_of(keys, [&](const cache::SegmentKey& key) {
           return std::ranges::find(plan_->segments(), key) != plan_->segments().end();
         });
}

void WeightSession::describe(hal::StartReport* report) const {
  outcome_->describe(report);
  report->mappedBytes += weights_->takenBytes();
  if (taken_ != nullptr) report->hashedBytes += taken_->tags.readBytes();
  report->packedBytes = weights_->packedBytes();
  report->sharedBytes = weights_->sharedBytes();
}

}  // namespace hearth::cpu
