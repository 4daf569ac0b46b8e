// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/weight_session.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <set>
#include <unordered_map>

#include "base/caught.h"
#include "base/format.h"
#include "base/log.h"
#include "base/trace.h"
#include "base/wall_clock.h"
#include "drivers/cpu/platform/host_facts.h"
#include "drivers/cpu/weights/in_place_constants.h"
#include "drivers/cpu/weights/segment_prefetcher.h"
#include "drivers/cpu/weights/stored_host_facts.h"
#include "graph/model_digest.h"

namespace hearth::cpu {
namespace {

// Below this many bytes of constants a start from the store takes longer than packing.
constexpr uint64_t kWorthKeeping = uint64_t{64} << 10;

constexpr char kPartMissing[] = "part of the plan is missing";

template <typename Key>
Key keyOf(std::string_view kind, std::initializer_list<base::Sha256Digest> parts) {
  base::Sha256 hash;
  hash.update(kind.data(), kind.size());
  for (const base::Sha256Digest& part : parts) hash.update(part);
  return {hash.finish()};
}

cache::PlanKey recordKey(const base::Sha256Digest& structure) {
  return keyOf<cache::PlanKey>("hearth-cpu record", {structure});
}

uint64_t constantBytes(const graph::Model& model) {
  uint64_t bytes = 0;
  for (const graph::Operand& operand : model.main().operands)
    if (operand.isConstant()) bytes += operand.location.length;
  return bytes;
}

}  // namespace

WeightSession::WeightSession(std::shared_ptr<cache::SegmentStore> store,
                             std::shared_ptr<const graph::Model> model,
                             std::shared_ptr<PackedWeights> weights,
                             const hal::PrepareOptions& options, unsigned threads)
    : store_(std::move(store)),
      model_(std::move(model)),
      weights_(std::move(weights)),
      options_(options),
      threads_(threads) {}

uint64_t WeightSession::bytesWorthKeeping(const graph::Model& model) {
  const uint64_t bytes = constantBytes(model);
  return bytes >= kWorthKeeping ? bytes : 0;
}

// Finds out what the keys are made from. False when the model has no place in the store; reason_
// then says why.
bool WeightSession::identify() {
  if (!isWorthKeeping(*model_)) {
    reason_ = "too small to keep";
    return false;
  }
  if (store_->planCapacity() == cache::PlanCapacity::kNone) {
    const cache::StoreFailure why = store_->writability();
    fail(why.reason, why.message);
    return false;
  }
  const Result<BuildIdentity>& build = buildIdentity();
  if (!build) {
    fail(cache::StoreReason::kOff, build.error().toString());
    return false;
  }
  build_ = &*build;
  structure_ = graph::structureDigest(*model_);
  const auto preference = static_cast<uint8_t>(options_.preference);
  planOptions_ = base::Sha256::of({&preference, 1});
  graph_ = keyOf<cache::PlanKey>("hearth-cpu graph", {structure_, planOptions_}).bytes;
  contents_.emplace(*model_, *store_, threads_);
  state_ = hal::StartReport::State::kCold;
  return true;
}

hal::StartReport WeightSession::explain() {
  isOnlyAsked_ = true;
  if (identify()) {
    findPlan();
  } else if (store_->writability().reason == cache::StoreReason::kGone && isWorthKeeping(*model_)) {
    state_ = hal::StartReport::State::kCold;
    reason_ = "there is no store yet";
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
  const auto reason = error.code() == ErrorCode::kOutOfMemory ? cache::StoreReason::kNoMemory
                                                              : cache::StoreReason::kIoError;
  if (base::caught([&] { fail(reason, error.message()); })) return;
  const std::lock_guard lock(mutex_);
  state_ = hal::StartReport::State::kUncached;
  reason_ = cache::storeReasonName(reason);  // short enough to need no memory of its own
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
  const std::string reason = reason_;
  const cache::StoreFailure readOnly = hindrance();
  if (readOnly.reason != cache::StoreReason::kNone) {
    setUncached(readOnly);
    return;
  }
  // One process builds this model's plan, and the others wait for it. The key of the lock does not
  // depend on the content, so that no process has to read the model for it.
  const auto lockKey = keyOf<cache::SegmentKey>("hearth-cpu build",
                                                {structure_, planOptions_, build_->fingerprint()});
  ticket_ = std::make_shared<cache::BuildTicket>(store_->acquire(lockKey));
  if (findPlan()) {
    ticket_.reset();
    return;
  }
  const Status prepared = contents_->prepareToPack();
  noteHashed();
  if (!prepared) {
    ticket_.reset();
    return fail(cache::StoreReason::kIoError, prepared.error().toString());
  }
  reason_ = reason;  // a corrupt object is removed when it is found: the second look misses it
  isKept_ = true;
  publishesLast_ = publishesLast;
  if (publishesLast) return;
  weights_->onPacked([weak = weak_from_this()](const std::shared_ptr<PackedSegment>& packed) {
    // The private memory is freed before the next weights are packed into more of it.
    if (const auto self = weak.lock(); self && !self->hasGivenUp_)
      self->guarded([&] { self->publishSegment(packed, packed->size(), true); });
  });
}

// Why nothing can be kept; kNone where it can. A full disk counts as writable: it may have room by
// the time of writing.
cache::StoreFailure WeightSession::hindrance() const {
  cache::StoreFailure why = store_->writability();
  return why.reason == cache::StoreReason::kNoSpace ? cache::StoreFailure{} : why;
}

// Sets the state of packings that stay in this process, and appends why to the known reason.
void WeightSession::setUncached(const cache::StoreFailure& why) {
  state_ = hal::StartReport::State::kUncached;
  reason_ =
      base::formatText("{}; {}: {}", reason_, cache::storeReasonName(why.reason), why.message);
}

// Finds the plan and presets its places. True when all places are preset; otherwise sets the
// reason.
bool WeightSession::findPlan() {
  std::optional<PlanRecord> known;
  if (!contents_->recall()) {
    // Hashing all of the model pays only if a model of this structure was packed before.
    if (store_->planCapacity() == cache::PlanCapacity::kMany) {
      known = findRecord();
      if (known->empty()) {
        reason_ = "first start of this model";
        return false;
      }
    }
    const Status hashed = contents_->hash();
    noteHashed();
    if (!hashed) {
      reason_ = hashed.error().toString();
      return false;
    }
  }
  const auto plan = store_->findPlan(planKey());
  if (plan) {
    // Kept even where segments are missing: otherwise the store could evict those that are there
    // to make room for the missing ones.
    plan_ = *plan;
    return presetFrom(*plan_);
  }
  const PlanRecord record = known ? *std::move(known) : findRecord();
  reason_ = record.difference({*build_, planOptions_, contents_->digest()});
  if (plan.error().reason == cache::StoreReason::kOtherPlan) {
    reason_ = "another model or build in the bundle";
  } else if (plan.error().reason != cache::StoreReason::kAbsent) {
    reason_ = base::formatText("plan {}", cache::storeReasonName(plan.error().reason));
  } else if (reason_.empty()) {
    reason_ = record.empty() ? "first start of this model" : "evicted";
  }
  return false;
}

PlanRecord WeightSession::findRecord() {
  if (store_->planCapacity() != cache::PlanCapacity::kMany) return {};
  const auto found = store_->findPlan(recordKey(structure_));
  return found ? PlanRecord::parse((*found)->bytes()) : PlanRecord();
}

bool WeightSession::presetFrom(const cache::LoadedPlan& plan) {
  const auto stored = StoredPlan::parse(plan.bytes(), plan.segments().size());
  if (!stored) {
    reason_ = "plan corrupt";
    base::logWarn("{}", stored.error().toString());
    return false;
  }
  const std::optional<uint32_t> graph = stored->graphNumber(graph_);
  if (!graph) {
    reason_ = "first start of this signature";
    return false;
  }
  std::vector<bool> isUsed(plan.segments().size());
  for (const StoredPlan::Entry& entry : stored->entries)
    if (entry.graph == *graph) isUsed[entry.segment] = true;
  std::vector<std::shared_ptr<PackedSegment>> segments;
  std::vector<cache::SegmentRef> mapped;
  cache::StoreReason missing = cache::StoreReason::kNone;
  for (size_t i = 0; i < plan.segments().size(); ++i) {
    if (!isUsed[i]) {
      segments.push_back(nullptr);
      continue;
    }
    cache::FoundSegment found = store_->find(plan.segments()[i]);
    if (found && found.segment->size() != stored->segmentSizes[i])
      found = {nullptr, cache::StoreReason::kCorrupt};
    if (!found) missing = found.reason;
    segments.push_back(found ? std::make_shared<PackedSegment>(found.segment) : nullptr);
    if (found) mapped.push_back(found.segment);
  }
  mappedBytes_ = 0;
  for (const cache::SegmentRef& segment : mapped) mappedBytes_ += segment->size();
  if (!isOnlyAsked_) {
    // `done` refers to the store weakly: a store that is closed meanwhile must not be destroyed on
    // a prefetching thread.
    expectLookups(*model_);
    populate_ = pageIn(
        std::move(mapped), [this] { readSmallConstantsAhead(*model_); },
        [weak = std::weak_ptr(store_)] {
          if (const auto store = weak.lock()) store->checkFound();
        });
  }
  for (const StoredPlan::Entry& entry : stored->entries)
    if (entry.graph == *graph && segments[entry.segment] != nullptr)
      weights_->preset(entry.place,
                       {segments[entry.segment], entry.offset, entry.size, entry.seed});
  if (missing != cache::StoreReason::kNone) {
    reason_ = missing == cache::StoreReason::kAbsent
                  ? "segment evicted"
                  : base::formatText("segment {}", cache::storeReasonName(missing));
    return false;
  }
  isPartly_ = !stored->isWhole(*graph);
  if (isPartly_) {
    reason_ = kPartMissing;
    return false;
  }
  state_ = hal::StartReport::State::kWarm;
  isKeptWhole_ = true;
  reason_.clear();
  return true;
}

void WeightSession::populate() {
  std::function<void()> begin;
  {
    const std::lock_guard lock(mutex_);
    begin.swap(populate_);
  }
  if (begin) begin();
}

void WeightSession::noteHashed() {
  const std::lock_guard lock(mutex_);
  hashedBytes_ = contents_->hashedBytes();
}

cache::PlanKey WeightSession::planKey() const {
  // A bundle has one plan, which holds all signatures of a model.
  if (store_->planCapacity() == cache::PlanCapacity::kOne)
    return keyOf<cache::PlanKey>("hearth-cpu bundle", {build_->fingerprint(), contents_->digest()});
  return keyOf<cache::PlanKey>("hearth-cpu plan",
                               {graph_, build_->fingerprint(), contents_->digest()});
}

void WeightSession::publishSegment(const std::shared_ptr<PackedSegment>& packed, size_t size,
                                   bool isCopiedFirst) {
  if (!packed->claimPublication()) return;
  cache::PublishRequest request;
  request.payload = {packed->data(), size};
  request.owner = packed;
  request.done = [packed, weak = weak_from_this()](cache::StoreResult<cache::SegmentRef> result) {
    if (result) return packed->adopt(std::move(*result));
    packed->giveUpPublication();
    if (const auto self = weak.lock()) self->fail(result.error().reason, result.error().message);
  };
  if (isCopiedFirst)
    request.copied = [packed](const memory::Mapping& copy) {
      packed->adoptCopy(copy);
    };
  store_->publishAsync(std::move(request));
}

void WeightSession::publish() {
  guarded([&] { tryToPublish(); });
}

void WeightSession::tryToPublish() {
  if (build_ != nullptr) rememberHostFacts(store_);
  repackedBytes_ = weights_->repackedBytes();
  isAllPacked_ = true;
  if (hasGivenUp_ || (!isKept_ && !mendPlan())) return;
  // This includes packings that other models of this process made and did not keep.
  publishOwn();
  for (const PackedWeights::Group& group : weights_->closeGroups())
    publishSegment(group.segment, group.size);
  finishLater();
}

void WeightSession::finishLater() {
  store_->afterPublishing([self = shared_from_this()] { self->finish(); });
}

void WeightSession::publishAgain() {
  guarded([&] { tryToPublishAgain(); });
}

void WeightSession::tryToPublishAgain() {
  if (build_ == nullptr || hindrance().reason != cache::StoreReason::kNone || !lacksPlaces())
    return;
  publishOwn();
  for (const PackedWeights::Group& group : weights_->closeGroups())
    publishSegment(group.segment, group.size);
  finishLater();
}

std::string WeightSession::factKey(std::string_view kind) const {
  std::string key(kind);
  key += '\0';
  key.append(graph_.begin(), graph_.end());
  const base::Sha256Digest build = build_->fingerprint();
  key.append(build.begin(), build.end());
  return key + std::to_string(threads_);
}

std::vector<uint8_t> WeightSession::recall(std::string_view kind) const {
  if (build_ == nullptr) return {};
  return store_->recall(factKey(kind)).value_or(std::vector<uint8_t>());
}

void WeightSession::remember(std::string_view kind, std::vector<uint8_t> bytes) const {
  if (build_ == nullptr) return;
  const cache::Fact fact{factKey(kind), std::move(bytes)};
  store_->remember({&fact, 1});
}

void WeightSession::onCorrupt(const std::function<void(const cache::SegmentKey&)>& handler) {
  if (store_->planCapacity() == cache::PlanCapacity::kNone) return;
  std::shared_ptr<void> added = store_->addCorruptionHandler(
      [handler, weak = std::weak_ptr(store_)](const cache::SegmentKey& key) {
        // The repair is queued: packing takes long, and the store calls handlers one by one.
        if (const auto store = weak.lock())
          store->afterPublishing([handler, key] { handler(key); });
      });
  store_->expectRepairs();
  {
    const std::lock_guard lock(mutex_);
    corruptionHandler_.swap(added);
  }
  // The check may have found segments wrong before the handler was added.
  for (const auto& [place, packed] : weights_->places())
    if (const cache::SegmentRef used = packed.segment->published(); used && used->isCorrupt())
      store_->afterPublishing([handler, key = used->key()] { handler(key); });
}

void WeightSession::repaired(const std::vector<std::shared_ptr<PackedSegment>>& segments) {
  uint64_t bytes = 0;
  for (const auto& segment : segments) bytes += segment->size();
  base::logWarn("{} bytes of packed weights of {} were wrong; they are packed anew.", bytes,
                modelName());
  {
    const std::lock_guard lock(mutex_);
    repairedBytes_ += bytes;
    reason_ = "segment corrupt";
  }
  if (hindrance().reason != cache::StoreReason::kNone) return;
  guarded([&] {
    for (const auto& segment : segments) publishSegment(segment, segment->size());
    finishLater();
  });
}

// Whether the store lacks the segment of a place, or has not written it yet.
bool WeightSession::lacksPlaces() const {
  return std::ranges::any_of(weights_->places(), [](const auto& place) {
    return place.second.segment->published() == nullptr;
  });
}

// True when the plan that was taken for whole has to be written again, because places of it had a
// wrong size or because it lacks places that the operations read.
bool WeightSession::mendPlan() {
  if (build_ == nullptr || !isWarm()) return false;
  const bool isWrong = weights_->droppedPresets() != 0;
  if (!isWrong && !lacksPlaces()) return false;
  if (isWrong)
    base::logWarn("The plan of {} names packed weights of a wrong size and is not used for them.",
                  modelName());
  const cache::StoreFailure readOnly = hindrance();
  // A start that only used what other models of this process packed remains warm.
  if (isWrong || !weights_->packedBytes().empty()) {
    const std::lock_guard lock(mutex_);
    state_ = hal::StartReport::State::kCold;
    reason_ = isWrong ? "plan corrupt" : kPartMissing;
    if (readOnly.reason != cache::StoreReason::kNone) setUncached(readOnly);
  }
  if (readOnly.reason != cache::StoreReason::kNone) return false;
  publishOwn();
  return true;
}

// Publishes the packings that have a segment of their own and are not in the store.
void WeightSession::publishOwn() {
  std::set<std::shared_ptr<PackedSegment>> own;
  for (const auto& [place, packed] : weights_->places())
    if (packed.segment->published() == nullptr && packed.offset == 0 &&
        packed.size == packed.segment->size())
      own.insert(packed.segment);
  for (const auto& packed : own) publishSegment(packed, packed->size());
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
                         modelName(), confirmed.error().message());
  if (!confirmed)
    return fail(confirmed.error().code() == ErrorCode::kBadState ? cache::StoreReason::kChanged
                                                                 : cache::StoreReason::kIoError,
                confirmed.error().message());
  std::vector<cache::SegmentKey> keys;
  StoredPlan stored = currentPlan(&keys);
  if (keys.empty()) return;
  // The disk is still full: the plan would lack the same places as the stored one.
  if (isPartly_ && !stored.partly.empty() && hasNothingNew(keys)) return;
  const cache::PlanDescription description{modelName(), "hearth-cpu", base::wallClock(), ""};
  auto plan = cache::StoreResult<cache::PlanRef>(nullptr);
  if (store_->planCapacity() == cache::PlanCapacity::kOne) {
    StoredPlan all = stored;
    std::vector<cache::SegmentKey> allKeys = keys;
    addOthers(&all, &allKeys);
    plan = store_->publishPlan(planKey(), all.encoded(), allKeys, description);
  }
  // The only attempt in a weight store. In a bundle the second one, without the other signatures:
  // their segments may be missing or wrong.
  if (!plan || *plan == nullptr)
    plan = store_->publishPlan(planKey(), stored.encoded(), keys, description);
  if (!plan) return fail(plan.error().reason, plan.error().message);
  {
    const std::lock_guard lock(mutex_);
    plan_ = std::move(*plan);
    isKeptWhole_ = stored.partly.empty();
  }
  if (store_->planCapacity() != cache::PlanCapacity::kMany) return;
  PlanRecord record = findRecord();
  if (!record.add({*build_, planOptions_, contents_->digest()})) return;
  if (const auto written =
          store_->publishPlan(recordKey(structure_), record.encoded(), {},
                              {modelName(), "hearth-cpu record", base::wallClock(), ""});
      !written)
    fail(written.error().reason, written.error().message);
}

// Whether the plan that was found names all of these segments.
bool WeightSession::hasNothingNew(const std::vector<cache::SegmentKey>& keys) const {
  const std::lock_guard lock(mutex_);
  return plan_ != nullptr && std::ranges::all_of(keys, [&](const cache::SegmentKey& key) {
           return std::ranges::find(plan_->segments(), key) != plan_->segments().end();
         });
}

void WeightSession::fail(cache::StoreReason reason, const std::string& message) {
  const std::lock_guard lock(mutex_);
  state_ = hal::StartReport::State::kUncached;
  reason_ = base::formatText("{}: {}", cache::storeReasonName(reason), message);
}

// The plan of the published places of this model; appends the keys of their segments to `keys`.
StoredPlan WeightSession::currentPlan(std::vector<cache::SegmentKey>* keys) const {
  StoredPlan stored;
  stored.graphs = {graph_};
  bool isWhole = isAllPacked_;
  std::unordered_map<cache::SegmentKey, uint32_t> numbers;
  for (const auto& [place, packed] : weights_->places()) {
    const cache::SegmentRef segment = packed.segment->published();
    if (segment == nullptr) {
      isWhole = false;
      continue;
    }
    const auto [it, isNew] =
        numbers.try_emplace(segment->key(), static_cast<uint32_t>(keys->size()));
    if (isNew) {
      keys->push_back(segment->key());
      stored.segmentSizes.push_back(segment->size());
    }
    stored.entries.push_back({0, place, packed.seed, it->second, packed.offset, packed.size});
  }
  if (!isWhole) stored.partly = {0};
  return stored;
}

// Adds what the bundle's plan has for other signatures.
void WeightSession::addOthers(StoredPlan* stored, std::vector<cache::SegmentKey>* keys) const {
  const auto found = store_->findPlan(planKey());
  if (!found) return;
  const auto known = StoredPlan::parse((*found)->bytes(), (*found)->segments().size());
  if (!known) return;
  std::vector<uint32_t> graphs(known->graphs.size(), UINT32_MAX);
  std::vector<uint32_t> segments(known->segmentSizes.size(), UINT32_MAX);
  for (const StoredPlan::Entry& entry : known->entries) {
    if (known->graphs[entry.graph] == graph_) continue;
    uint32_t& graph = graphs[entry.graph];
    if (graph == UINT32_MAX) {
      graph = static_cast<uint32_t>(stored->graphs.size());
      stored->graphs.push_back(known->graphs[entry.graph]);
      if (!known->isWhole(entry.graph)) stored->partly.push_back(graph);
    }
    uint32_t& segment = segments[entry.segment];
    if (segment == UINT32_MAX) {
      const cache::SegmentKey& key = (*found)->segments()[entry.segment];
      const auto same = std::ranges::find(*keys, key);
      segment = static_cast<uint32_t>(same - keys->begin());
      if (same == keys->end()) {
        keys->push_back(key);
        stored->segmentSizes.push_back(known->segmentSizes[entry.segment]);
      }
    }
    StoredPlan::Entry moved = entry;
    moved.graph = graph;
    moved.segment = segment;
    stored->entries.push_back(moved);
  }
}

bool WeightSession::isWarm() const {
  const std::lock_guard lock(mutex_);
  return state_ == hal::StartReport::State::kWarm;
}

void WeightSession::describe(hal::StartReport* report) const {
  const std::lock_guard lock(mutex_);
  report->state = state_;
  report->reason = reason_;
  report->packedBytes = weights_->packedBytes();
  report->repackedBytes = repackedBytes_;
  report->repairedBytes = repairedBytes_;
  report->mappedBytes = mappedBytes_;
  report->sharedBytes = weights_->sharedBytes();
  report->hashedBytes = hashedBytes_;
}

// The name of the file behind the first pool that has one, without folders; else empty.
std::string WeightSession::modelName() const {
  for (const memory::PoolRef& pool : model_->pools) {
    if (pool->fd() < 0) continue;
    char path[4096];
    const ssize_t length =
        ::readlink(base::formatText("/proc/self/fd/{}", pool->fd()).c_str(), path, sizeof path);
    if (length <= 0) continue;
    const std::string_view whole(path, static_cast<size_t>(length));
    return std::string(whole.substr(whole.rfind('/') + 1));
  }
  return "";
}

}  // namespace hearth::cpu
