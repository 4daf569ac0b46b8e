// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/model_family.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "cache/anonymous_store.h"
#include "drivers/cpu/weights/in_place_constants.h"
#include "drivers/cpu/weights/weight_session.h"
#include "hal/request_check.h"

namespace hearth::cpu {
namespace {

// How many lists of operations have weights that are kept. Few models have more than two: which
// operations are left depends on the shapes only where arithmetic on shapes does.
constexpr size_t kKeptParts = 32;

// The name of a part in cache files.
base::Sha256Digest digestOf(const std::vector<uint32_t>& operations) {
  base::Sha256 hash;
  hash.update("hearth-cpu part", 15);
  hash.update(operations.data(), operations.size() * sizeof(uint32_t));
  return hash.finish();
}

// What ops::specialize() has added to the constants that the model has, `givenBytes`: it follows
// from the shapes of inputs.
bool isShapeValue(const graph::Operand& operand, uint64_t givenBytes) {
  return operand.lifetime == graph::Lifetime::kConstantCopy &&
         operand.location.offset >= givenBytes;
}

ShapeValues shapeValuesOf(const graph::Model& part, uint64_t givenBytes) {
  ShapeValues values;
  uint32_t first = 0, number = 0;
  for (const graph::Subgraph& subgraph : part.subgraphs) {
    std::vector<bool> isConstant(subgraph.operands.size());
    for (uint32_t k = 0; k < subgraph.operands.size(); ++k) {
      const graph::Operand& operand = subgraph.operands[k];
      isConstant[k] = operand.isConstant() || !operand.hasValue();
      if (isShapeValue(operand, givenBytes)) values.operands.insert(first + k);
    }
    const auto follows = [&](uint32_t k) {
      return values.operands.contains(first + k) && !graph::isScalar(subgraph.operands[k].type);
    };
    for (const graph::Operation& operation : subgraph.operations) {
      const bool isFolded =
          std::ranges::all_of(operation.inputs, [&](uint32_t k) { return isConstant[k]; });
      const bool isFollowing = std::ranges::any_of(operation.inputs, follows);
      if (isFollowing) values.operations.insert(number);
      ++number;
      for (const uint32_t output : operation.outputs) {
        isConstant[output] = isFolded;
        if (isFolded && isFollowing) values.operands.insert(first + output);
      }
    }
    first += static_cast<uint32_t>(subgraph.operands.size());
  }
  return values;
}

}  // namespace

ModelFamily::ModelFamily(const hal::PrepareOptions& options,
                         std::shared_ptr<threads::ThreadPool> pool,
                         std::shared_ptr<cache::SegmentStore> store, SavedFamily saved,
                         FamilyKeeping keeping, uint64_t givenBytes)
    : options_(options),
      pool_(std::move(pool)),
      store_(std::move(store)),
      saved_(std::move(saved)),
      keeping_(std::move(keeping)),
      givenBytes_(givenBytes) {}

// The client may change the model's constants from now on.
ModelFamily::~ModelFamily() {
  finishSaves();
}

void ModelFamily::endPreparation() {
  isPrepared_ = true;
  bool isNew = saved() == nullptr;
  {
    const std::lock_guard lock(mutex_);
    isNew |= std::ranges::any_of(parts_, [&](const Part& part) { return isWorthKeeping(part); });
  }
  if (isNew) keepLater();
}

void ModelFamily::finishSaves() const {
  std::vector<std::shared_ptr<SaveQueue::Save>> saves;
  {
    const std::lock_guard lock(mutex_);
    saves = saves_;
  }
  for (const auto& save : saves) save->finish();
}

std::string ModelFamily::cacheProblem() const {
  const std::lock_guard lock(mutex_);
  return cacheProblem_;
}

// Whether the files of the client are to have the part: those of a saved model have some already.
bool ModelFamily::isWorthKeeping(const Part& part) const {
  return saved() == nullptr || (savedPart(part.operations).places.empty() &&
                                !part.first->finishedWeights()->packedBytes().empty());
}

void ModelFamily::keepLater() {
  if (keeping_.keep == nullptr) return;
  std::shared_ptr<SaveQueue::Save> save =
      SaveQueue::post(keeping_.token, store_, [this] { keepNow(); });
  const std::lock_guard lock(mutex_);
  saves_.push_back(std::move(save));
}

void ModelFamily::keepNow() {
  std::vector<Part> parts;
  {
    const std::lock_guard lock(mutex_);
    parts = parts_;
  }
  std::vector<PartWeights> weights;
  for (const Part& part : parts)
    if (isWorthKeeping(part))
      weights.push_back({digestOf(part.operations), part.first->finishedWeights()});
  std::string problem = keeping_.keep(std::move(weights));
  const std::lock_guard lock(mutex_);
  cacheProblem_ = std::move(problem);
}

std::shared_ptr<CpuPreparedModel> ModelFamily::find(const std::vector<uint32_t>& operations) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(parts_, operations, &Part::operations);
  return found == parts_.end() ? nullptr : found->first;
}

bool ModelFamily::keep(const std::vector<uint32_t>& operations,
                       const std::shared_ptr<CpuPreparedModel>& first) {
  const std::lock_guard lock(mutex_);
  if (parts_.size() == kKeptParts || std::ranges::contains(parts_, operations, &Part::operations))
    return false;
  parts_.push_back({operations, first});
  return true;
}

const SavedPart& ModelFamily::savedPart(const std::vector<uint32_t>& operations) const {
  const auto found = saved_.parts.find(digestOf(operations));
  return found == saved_.parts.end() ? unsaved_ : found->second;
}

std::shared_ptr<cache::SegmentStore> ModelFamily::storeFor(const graph::Model& part) {
  if (store_->planCapacity() != cache::PlanCapacity::kOne || !WeightSession::isWorthKeeping(part))
    return store_;
  // A bundle holds plans for one content, in which large tables do not count (ModelContents). A
  // part that looks up others would replace the plans of this one at each start.
  std::vector<Table> tables;
  for (const graph::DataLocation& table : tablesOnlyLookedUp(part))
    tables.emplace_back(table.pool, table.offset, table.length);
  std::ranges::sort(tables);
  const std::lock_guard lock(mutex_);
  if (!bundleTables_) bundleTables_ = tables;
  if (tables == *bundleTables_) return store_;
  return std::make_shared<cache::AnonymousStore>(
      cache::StoreFailure{cache::StoreReason::kOff, "The bundle holds another part of the model."});
}

Result<std::shared_ptr<CpuPreparedModel>> ModelFamily::prepare(
    std::shared_ptr<const graph::Model> part, const std::vector<uint32_t>& operations) {
  const ShapeValues values = shapeValuesOf(*part, givenBytes_);
  // Lost constants of a saved model are replaced.
  if (saved() == nullptr) HEARTH_TRY(hal::checkPoolsWhole(*part));
  hal::PrepareOptions options = options_;
  options.expectedInputs.clear();
  if (isPrepared_) options.deadline = {};
  std::shared_ptr<CpuPreparedModel> first = find(operations);
  std::shared_ptr<CpuPreparedModel> prepared;
  if (first == nullptr && saved() == nullptr) {
    const std::shared_ptr<cache::SegmentStore> store = storeFor(*part);
    HEARTH_ASSIGN(prepared, CpuPreparedModel::create(std::move(part), options, pool_, store, {}));
  } else if (first == nullptr) {
    options.deadline = {};
    HEARTH_ASSIGN(prepared,
                  CpuPreparedModel::createFromSaved(savedPart(operations), std::move(part), values,
                                                    options, pool_, saved()));
  } else {
    options.deadline = {};
    HEARTH_ASSIGN(prepared, CpuPreparedModel::createBeside(first, std::move(part), values, options,
                                                           pool_, saved()));
  }
  // What endPreparation() writes needs not be written before.
  if (first == nullptr && keep(operations, prepared) && isPrepared_ &&
      isWorthKeeping({operations, prepared}))
    keepLater();
  return prepared;
}

}  // namespace hearth::cpu
