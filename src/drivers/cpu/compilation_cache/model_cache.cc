// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/compilation_cache/model_cache.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/trace.h"
#include "base/wall_clock.h"
#include "cache/compilation/cache_files.h"
#include "cache/compilation/mapping_manager.h"
#include "drivers/cpu/compilation_cache/cached_model.h"
#include "drivers/cpu/compilation_cache/packed_constants.h"
#include "drivers/cpu/platform/build_identity.h"
#include "drivers/cpu/platform/host_facts.h"
#include "drivers/cpu/weights/open_stores.h"
#include "drivers/cpu/weights/segment_prefetcher.h"
#include "drivers/cpu/weights/stored_host_facts.h"
#include "graph/model_bytes.h"
#include "hal/request_check.h"
#include "memory/sigbus_order.h"

namespace hearth::cpu {
namespace {

// Constants of this many bytes or more are segments; smaller ones lie in the model cache.
constexpr uint64_t kLargeConstant = 4096;
// Constants of this many bytes or more are left out if they are only needed packed.
constexpr uint64_t kWorthAHole = 64;
constexpr uint64_t kPieceAlignment = 64;

uint64_t aligned(uint64_t size) {
  return (size + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
}

// Whether cache files can name segments of the store. A bundle holds the segments of one plan only,
// and a store in memory ends with its process.
bool canName(const cache::SegmentStore& store) {
  return store.planCapacity() == cache::PlanCapacity::kMany;
}

// This many scales of channels or more are a segment, which is cheaper to open than to hash.
constexpr size_t kManyScales = 4096;

Status checkFiles(const hal::Cache& cache) {
  if (cache.modelFiles.size() == kCacheFileCounts.model &&
      cache.dataFiles.size() == kCacheFileCounts.data)
    return {};
  return fail(ErrorCode::kBadData, "There are {} and {} cache files; hearth-cpu takes {} and {}.",
              cache.modelFiles.size(), cache.dataFiles.size(), kCacheFileCounts.model,
              kCacheFileCounts.data);
}

}  // namespace

struct SavedFiles {
  memory::Mapping model;
  CachedPlan plan;  // refers to `model`
  std::shared_ptr<const memory::Mapping> data;
  uint64_t dataBytes = 0;
};

namespace {

// ---- saving ----

// Collects the large bytes of a model and rewrites the model so that it refers to them.
class Saver {
 public:
  explicit Saver(cache::SegmentStore& store) : store_(store) {}

  void collect(const ModelParts& parts) {
    if (canName(store_)) store_.flush();
    if (parts.weights != nullptr) addPlaces({}, *parts.weights);
    for (const PartWeights& part : parts.family) addPlaces(part.part, *part.weights);
    rewriteModel(parts);
    if (canName(store_)) publishConstants(parts.model);
    name();
  }

  // What the files have, and more parts. Error: kNotFound when the store lacks a segment of theirs.
  Status extend(const SavedFiles& files, std::span<const PartWeights> parts) {
    plan_ = files.plan;
    HEARTH_ASSIGN(const CachedData data, CachedData::parse({files.data->data(), files.dataBytes}));
    if (!plan_.places.empty()) {
      HEARTH_ASSIGN(places_, PackingMap::parse(plan_.places, data.segments.size()));
    }
    for (const CachedData::Segment& segment : data.segments) {
      if (segment.isInline) {
        add({files.data->data() + segment.offset, segment.size}, nullptr);
        continue;
      }
      const cache::FoundSegment found = store_.find(segment.key);
      if (!found || found.segment->size() != segment.size)
        return fail(ErrorCode::kNotFound, "The segment {} is not in the store any more.",
                    segment.key.hex());
      add({found.segment->data(), segment.size}, found.segment);
    }
    for (const PartWeights& part : parts) addPlaces(part.part, *part.weights);
    if (canName(store_)) {
      std::vector<uint32_t> indices;
      for (size_t i = data.segments.size(); i < sources_.size(); ++i)
        indices.push_back(static_cast<uint32_t>(i));
      publish(indices);
    }
    name();
    return {};
  }

  Status write(const hal::Cache& cache) {
    HEARTH_ASSIGN(const cache::CacheOwner owner, cacheOwner(cache.token));
    data_.layOut();
    const std::vector<uint8_t> head = data_.encodedHead();
    const std::vector<uint8_t> plan = plan_.encoded();
    const std::vector<uint8_t> padding(aligned(kReadSlack) + kPieceAlignment);
    std::vector<std::span<const uint8_t>> dataPieces = {head};
    for (size_t i = 0; i < data_.segments.size(); ++i) {
      const uint64_t size = data_.segments[i].size;
      if (!data_.segments[i].isInline) continue;
      dataPieces.push_back(sources_[i].bytes);
      dataPieces.push_back(std::span(padding).first(aligned(size + kReadSlack) - size));
    }
    const std::span<const uint8_t> modelPieces[] = {plan};
    return cache::saveKnownFiles(*cache::MappingManager::shared(), owner, cache.modelFiles[0].get(),
                                 modelPieces, cache.dataFiles[0].get(), dataPieces);
  }

 private:
  struct Source {
    std::span<const uint8_t> bytes;
    cache::SegmentRef published;  // null: the bytes go into the data cache
    std::shared_ptr<const void> owner;
    bool mayChange = false;  // somebody else's memory
  };

  uint32_t add(std::span<const uint8_t> bytes, cache::SegmentRef published,
               std::shared_ptr<const void> owner = nullptr) {
    sources_.push_back({bytes, std::move(published), std::move(owner)});
    return static_cast<uint32_t>(sources_.size() - 1);
  }

  // Adds the packed weights of a part.
  void addPlaces(const base::Sha256Digest& part, const PackedWeights& weights) {
    const auto graph = static_cast<uint32_t>(places_.graphs.size());
    places_.graphs.push_back(part);
    for (const auto& [place, packed] : weights.places()) {
      const auto [known, isNew] = packedSegments_.try_emplace(packed.segment.get(), 0);
      const uint64_t end = packed.offset + packed.size;
      if (isNew) {
        cache::SegmentRef published = canName(store_) ? packed.segment->published() : nullptr;
        const uint64_t size = published != nullptr ? published->size() : end;
        known->second = add({packed.segment->data(), size}, std::move(published), packed.segment);
      }
      // Of a segment that was not published only the used beginning is saved.
      Source& source = sources_[known->second];
      if (end > source.bytes.size()) source.bytes = {packed.segment->data(), end};
      places_.entries.push_back(
          {graph, place, packed.seed, known->second, packed.offset, packed.size});
    }
  }

  void rewriteModel(const ModelParts& parts) {
    graph::Model model = *parts.model;
    model.constantBytes.clear();
    model.pools.clear();
    std::vector<bool> isPacked;
    plan_.isInterpreted = parts.weights == nullptr;
    plan_.referenceOnly = parts.referenceOnly;
    plan_.choices = parts.choices;
    if (parts.plan != nullptr)
      isPacked = findPackedConstants(*parts.model, *parts.plan, *parts.weights);
    for (size_t g = 0; g < model.subgraphs.size(); ++g)
      for (size_t i = 0; i < model.subgraphs[g].operands.size(); ++i) {
        graph::Operand& operand = model.subgraphs[g].operands[i];
        if (!operand.isConstant()) continue;
        const bool isHole =
            g == 0 && i < isPacked.size() && isPacked[i] && operand.location.length >= kWorthAHole;
        place(&operand, {parts.model->constantData(operand), operand.location.length}, isHole,
              &model);
      }
    // Kernels may read past the last constant.
    model.constantBytes.resize(model.constantBytes.size() + kReadSlack);
    if (canName(store_)) *scales_ = graph::channelScales(model);
    const bool areApart = scales_->size() >= kManyScales;
    modelBytes_ =
        areApart ? graph::encodeModel(model, graph::Scales::kApart) : graph::encodeModel(model);
    plan_.model = modelBytes_;
    if (!areApart) return;
    plan_.scalesSegment =
        add({reinterpret_cast<const uint8_t*>(scales_->data()), scales_->size() * sizeof(float)},
            nullptr);
  }

  // Gives the constant its place in the model that is saved.
  void place(graph::Operand* operand, std::span<const uint8_t> bytes, bool isHole,
             graph::Model* model) {
    operand->lifetime = graph::Lifetime::kConstantReference;
    operand->location = {0, 0, bytes.size()};
    if (isHole) {
      plan_.holeBytes = std::max(plan_.holeBytes, bytes.size() + kReadSlack);
    } else if (bytes.size() >= kLargeConstant) {
      auto [pool, isNew] = pools_.try_emplace({bytes.data(), bytes.size()}, 0);
      if (isNew) {
        plan_.poolSegments.push_back(add(bytes, nullptr));
        pool->second = static_cast<uint32_t>(plan_.poolSegments.size());
      }
      operand->location.pool = pool->second;
    } else {
      operand->lifetime = graph::Lifetime::kConstantCopy;
      operand->location.offset = aligned(model->constantBytes.size());
      model->constantBytes.resize(operand->location.offset);
      model->constantBytes.insert(model->constantBytes.end(), bytes.begin(), bytes.end());
    }
  }

  void publishConstants(const std::shared_ptr<const graph::Model>& model) {
    std::vector<uint32_t> indices = plan_.poolSegments;
    if (plan_.scalesSegment) indices.push_back(*plan_.scalesSegment);
    for (const uint32_t index : indices) {
      Source& source = sources_[index];
      source.mayChange = true;
      source.owner = model;
      if (index == plan_.scalesSegment) source.owner = scales_;
    }
    publish(indices);
  }

  void publish(std::span<const uint32_t> indices) {
    std::vector<cache::SegmentRef> published(sources_.size());
    for (const uint32_t index : indices) {
      cache::PublishRequest request;
      request.payload = sources_[index].bytes;
      request.owner = sources_[index].owner;
      request.mayChange = sources_[index].mayChange;
      request.done = [&published, index](cache::StoreResult<cache::SegmentRef> result) {
        if (result) published[index] = std::move(*result);
      };
      store_.publishAsync(std::move(request));
    }
    store_.flush();
    for (const uint32_t index : indices) sources_[index].published = std::move(published[index]);
  }

  // Lists the segments for the data cache, and in a plan of the store, which protects them from
  // eviction.
  void name() {
    std::vector<cache::SegmentKey> keys;
    base::Sha256 pin;
    pin.update("hearth-cpu compilation cache", 28);
    for (const Source& source : sources_) {
      CachedData::Segment segment;
      segment.isInline = source.published == nullptr;
      segment.size = segment.isInline ? source.bytes.size() : source.published->size();
      if (!segment.isInline) {
        segment.key = source.published->key();
        keys.push_back(segment.key);
        pin.update(segment.key.bytes);
      }
      data_.segments.push_back(segment);
    }
    if (!places_.graphs.empty()) {
      places_.segmentSizes.clear();
      for (const CachedData::Segment& segment : data_.segments)
        places_.segmentSizes.push_back(segment.size);
      placeBytes_ = places_.encoded();
      plan_.places = placeBytes_;
    }
    if (keys.empty()) return;
    plan_.pin = {pin.finish()};
    const cache::PlanDescription description{"", "hearth-cpu compilation cache", base::wallClock(),
                                             ""};
    if (const auto kept = store_.publishPlan(plan_.pin, {}, keys, description); !kept)
      base::logInfo("The segments of a compilation cache are not kept: {}", kept.error().message);
  }

  cache::SegmentStore& store_;
  std::vector<Source> sources_;                        // by segment
  std::map<PackedSegment*, uint32_t> packedSegments_;  // indices of those that were packed
  std::map<std::pair<const uint8_t*, uint64_t>, uint32_t> pools_;  // by a constant's bytes
  PackingMap places_;
  CachedPlan plan_;
  std::shared_ptr<std::vector<float>> scales_ = std::make_shared<std::vector<float>>();
  std::vector<uint8_t> placeBytes_;  // plan_ refers to these and to modelBytes_
  std::vector<uint8_t> modelBytes_;
  CachedData data_;
};

// ---- loading ----

// The model with the memory of its pools.
struct LoadedMemory {
  cache::PlanRef pin;  // keeps the store's segments from eviction
  std::vector<std::shared_ptr<PackedSegment>> segments;
  memory::Mapping hole;
  graph::Model model;
};

Result<std::vector<std::shared_ptr<PackedSegment>>> segmentsOf(
    const CachedData& data, std::optional<uint32_t> scalesSegment,
    const std::shared_ptr<cache::SegmentStore>& store,
    const std::shared_ptr<const memory::Mapping>& bytes, SavedModel* saved) {
  std::vector<std::shared_ptr<PackedSegment>> segments;
  std::vector<cache::SegmentRef> mapped;
  const memory::WatchedTogether together;
  for (const CachedData::Segment& segment : data.segments) {
    cache::SegmentRef found;
    if (segment.isInline) {
      found = std::make_shared<const cache::Segment>(
          segment.key, std::span(bytes->data() + segment.offset, segment.size), bytes);
    } else {
      cache::FoundSegment kept = store->find(segment.key);
      if (!kept || kept.segment->size() != segment.size)
        return fail(ErrorCode::kNotFound, "The segment {} of the cache is not in the store: {}.",
                    segment.key.hex(),
                    cache::storeReasonName(kept ? cache::StoreReason::kCorrupt : kept.reason));
      found = std::move(kept.segment);
      // The segment of scales is read at once and needs no prefetching.
      if (segments.size() != scalesSegment) mapped.push_back(found);
      saved->mappedBytes += found->size();
    }
    segments.push_back(std::make_shared<PackedSegment>(std::move(found)));
  }
  saved->populate = pageIn(
      std::move(mapped), [] {},
      [weak = std::weak_ptr(store)] {
        // Background checks of the segments begin when they are prefetched.
        if (const auto known = weak.lock()) known->checkFound();
      });
  return segments;
}

Result<std::vector<memory::PoolRef>> poolsOf(const CachedPlan& plan, LoadedMemory* memory) {
  HEARTH_ASSIGN(memory->hole, memory::Mapping::reserved(std::max(plan.holeBytes, kReadSlack)));
  std::vector<memory::PoolRef> pools = {
      memory::Pool::borrowed(memory->hole.data(), memory->hole.size())};
  // Kernels may read past a segment, too.
  static_assert(kReadSlack <= memory::Mapping::kReadableBehind);
  for (const uint32_t index : plan.poolSegments)
    pools.push_back(memory::Pool::borrowed(memory->segments[index]->data(),
                                           memory->segments[index]->size() + kReadSlack));
  return pools;
}

// Where the packed weights of each part lie; a model that is planned as a whole is one part.
Result<SavedParts> partsOf(const CachedPlan& plan, const CachedData& data,
                           std::span<const std::shared_ptr<PackedSegment>> segments) {
  HEARTH_ASSIGN(const PackingMap places, PackingMap::parse(plan.places, segments.size()));
  SavedParts parts;
  std::set<std::pair<const SavedPart*, uint32_t>> counted;
  for (const PackingMap::Entry& entry : places.entries) {
    if (entry.segment == plan.scalesSegment)
      return fail(ErrorCode::kBadData, "Scales of a model cache are packed weights, too.");
    if (places.segmentSizes[entry.segment] != segments[entry.segment]->size())
      return fail(ErrorCode::kBadData, "The model cache is not of the data cache.");
    SavedPart& part = parts[places.graphs[entry.graph]];
    part.places[entry.place] = {segments[entry.segment], entry.offset, entry.size, entry.seed};
    if (!data.segments[entry.segment].isInline && counted.emplace(&part, entry.segment).second)
      part.mappedBytes += segments[entry.segment]->size();
  }
  return parts;
}

using OpenStore = std::shared_ptr<cache::SegmentStore> (*)(const hal::PrepareOptions&);

Result<SavedModel> load(const hal::PrepareOptions& options, const hal::Cache& cache,
                        cache::MappingManager& map, OpenStore openStore) {
  HEARTH_TRY(checkFiles(cache));
  HEARTH_ASSIGN(const cache::CacheOwner owner, cacheOwner(cache.token));
  HEARTH_ASSIGN(
      cache::CacheBytes bytes,
      cache::readKnownFiles(map, owner, cache.modelFiles[0].get(), cache.dataFiles[0].get()));
  const auto dataBytes = std::make_shared<const memory::Mapping>(std::move(bytes.data));
  HEARTH_ASSIGN(const CachedData data,
                CachedData::parse({dataBytes->data(), bytes.content.dataBytes}));
  HEARTH_ASSIGN(CachedPlan plan, CachedPlan::parse({bytes.model.data(), bytes.content.modelBytes},
                                                   data.segments.size()));
  SavedModel saved;
  saved.isInterpreted = plan.isInterpreted;
  saved.referenceOnly = std::move(plan.referenceOnly);
  saved.hasHoles = plan.holeBytes != 0;
  saved.choices = plan.choices;
  const auto memory = std::make_shared<LoadedMemory>();
  std::shared_ptr<cache::SegmentStore> store;
  if (std::ranges::any_of(data.segments, [](const auto& segment) { return !segment.isInline; })) {
    store = openStore(options);
    if (!canName(*store))
      return fail(ErrorCode::kNotFound, "The cache names segments of a weight store: {}",
                  store->writability().message);
    recallHostFacts(*store);
    saved.corruptions = std::make_shared<const FoundCorruptions>(*store);
    if (auto pin = store->findPlan(plan.pin)) memory->pin = std::move(*pin);
  }
  HEARTH_ASSIGN(memory->segments, segmentsOf(data, plan.scalesSegment, store, dataBytes, &saved));
  // The segment of scales stays mapped only until the model has copied them.
  std::shared_ptr<PackedSegment> copied;
  if (plan.scalesSegment) {
    copied = std::exchange(memory->segments[*plan.scalesSegment], nullptr);
    const CachedData::Segment& segment = data.segments[*plan.scalesSegment];
    if (!segment.isInline) saved.copiedScales = segment.key;
  }
  for (size_t i = 0; i < data.segments.size(); ++i)
    if (!data.segments[i].isInline && memory->segments[i] != nullptr)
      saved.segments.push_back(memory->segments[i]);
  saved.store = std::move(store);
  HEARTH_ASSIGN(std::vector<memory::PoolRef> pools, poolsOf(plan, memory.get()));
  std::span<const float> scales;
  if (copied != nullptr)
    scales = {reinterpret_cast<const float*>(copied->data()), copied->size() / sizeof(float)};
  HEARTH_ASSIGN(memory->model, graph::decodeModel(plan.model, std::move(pools), scales));
  if (copied != nullptr && copied->hasLosses())
    return fail(ErrorCode::kNotFound, "The scales of the cached model cannot be read.");
  saved.model = {memory, &memory->model};
  SavedParts parts;
  if (!plan.isInterpreted || !plan.places.empty()) {
    HEARTH_ASSIGN(parts, partsOf(plan, data, memory->segments));
  }
  if (plan.isInterpreted) {
    saved.family = std::move(parts);
  } else {
    saved.weights = std::make_shared<PackedWeights>();
    for (const auto& [place, packed] : parts[{}].places) saved.weights->preset(place, packed);
    saved.weights->seal();
  }
  saved.files = std::make_shared<const SavedFiles>(std::move(bytes.model), std::move(plan),
                                                   dataBytes, bytes.content.dataBytes);
  return saved;
}

}  // namespace

Result<cache::CacheOwner> cacheOwner(const hal::CacheToken& token) {
  cache::CacheOwner owner{{}, ::geteuid(), token};
  // Where the CPU's identity is known, no kernel has to run.
  if (const auto processor = processorIdentity()) {
    owner.build = *processor;
    return owner;
  }
  const Result<BuildIdentity>& build = buildIdentity();
  if (!build) return std::unexpected(build.error());
  owner.build = build->fingerprint();
  return owner;
}

Status saveModel(const ModelParts& parts, cache::SegmentStore& store, const hal::Cache& cache) {
  const base::TraceSpan span("start", "save the compilation");
  HEARTH_TRY(checkFiles(cache));
  // A start from such files could not pack what they lack. One of a part packs it.
  if (parts.weights != nullptr && !parts.weights->hasAllPlaces())
    return fail(ErrorCode::kOutOfMemory, "Memory was missing for the list of packed weights.");
  Saver saver(store);
  saver.collect(parts);
  // Constants that were lost read as zeros.
  HEARTH_TRY(hal::checkPoolsWhole(*parts.model));
  return saver.write(cache);
}

Status saveParts(const SavedFiles& files, std::span<const PartWeights> parts,
                 cache::SegmentStore& store, const hal::Cache& cache) {
  const base::TraceSpan span("start", "save parts of the compilation");
  Saver saver(store);
  HEARTH_TRY(saver.extend(files, parts));
  return saver.write(cache);
}

Status saveChoices(const SavedFiles& files, std::vector<uint8_t> choices, const hal::Cache& cache) {
  HEARTH_ASSIGN(const cache::CacheOwner owner, cacheOwner(cache.token));
  CachedPlan plan = files.plan;
  plan.choices = std::move(choices);
  const std::vector<uint8_t> model = plan.encoded();
  const std::span<const uint8_t> modelPieces[] = {model};
  const std::span<const uint8_t> dataPieces[] = {{files.data->data(), files.dataBytes}};
  return cache::saveKnownFiles(*cache::MappingManager::shared(), owner, cache.modelFiles[0].get(),
                               modelPieces, cache.dataFiles[0].get(), dataPieces);
}

Result<SavedModel> loadModel(const hal::PrepareOptions& options, const hal::Cache& cache) {
  const base::TraceSpan span("start", "load the compilation");
  return load(options, cache, *cache::MappingManager::shared(), openStore);
}

Result<SavedModel> lookAtModel(const hal::PrepareOptions& options, const hal::Cache& cache,
                               cache::MappingManager& map) {
  return load(options, cache, map, openStoreForLooking);
}

}  // namespace hearth::cpu
