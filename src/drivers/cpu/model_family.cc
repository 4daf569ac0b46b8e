// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/model_family.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "cache/anonymous_store.h"
#include "drivers/cpu/weights/weight_session.h"
#include "hal/request_check.h"

namespace hearth::cpu {
namespace {

// How many lists of operations have weights that are kept. Few models have more than two: which
// operations are left depends on the shapes only where arithmetic on shapes does.
constexpr size_t kKeptParts = 32;

}  // namespace

ModelFamily::ModelFamily(const hal::PrepareOptions& options,
                         std::shared_ptr<threads::ThreadPool> pool,
                         std::shared_ptr<cache::SegmentStore> store,
                         std::shared_ptr<SavedSegments> saved)
    : options_(options),
      pool_(std::move(pool)),
      store_(std::move(store)),
      saved_(std::move(saved)) {}

std::shared_ptr<CpuPreparedModel> ModelFamily::find(const std::vector<uint32_t>& operations) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(parts_, operations, &Part::operations);
  return found == parts_.end() ? nullptr : found->first;
}

void ModelFamily::keep(const std::vector<uint32_t>& operations,
                       const std::shared_ptr<CpuPreparedModel>& first) {
  const std::lock_guard lock(mutex_);
  if (parts_.size() < kKeptParts && !std::ranges::contains(parts_, operations, &Part::operations))
    parts_.push_back({operations, first});
}

std::shared_ptr<cache::SegmentStore> ModelFamily::storeFor(const graph::Model& part) {
  // A bundle has room for one part.
  if (store_->planCapacity() != cache::PlanCapacity::kOne) return store_;
  if (WeightSession::isWorthKeeping(part) && !isBundleTaken_.exchange(true)) return store_;
  return std::make_shared<cache::AnonymousStore>(
      cache::StoreFailure{cache::StoreReason::kOff, "The bundle holds another part of the model."});
}

Result<std::shared_ptr<CpuPreparedModel>> ModelFamily::prepare(
    std::shared_ptr<const graph::Model> part, const std::vector<uint32_t>& operations) {
  // Lost constants of a saved model are replaced.
  if (saved_ == nullptr) HEARTH_TRY(hal::checkPoolsWhole(*part));
  hal::PrepareOptions options = options_;
  options.expectedInputs.clear();
  if (isPrepared_) options.deadline = {};
  std::shared_ptr<CpuPreparedModel> first = find(operations);
  std::shared_ptr<CpuPreparedModel> prepared;
  if (first == nullptr && saved_ == nullptr) {
    const std::shared_ptr<cache::SegmentStore> store = storeFor(*part);
    HEARTH_ASSIGN(prepared, CpuPreparedModel::create(std::move(part), options, pool_, store, {}));
  } else {
    options.deadline = {};
    HEARTH_ASSIGN(prepared,
                  CpuPreparedModel::createBeside(first, std::move(part), options, pool_, saved_));
  }
  if (first == nullptr) keep(operations, prepared);
  return prepared;
}

}  // namespace hearth::cpu
