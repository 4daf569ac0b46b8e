// SPDX-License-Identifier: Apache-2.0
#include "ipc/shared_models.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

namespace hearth::ipc {
namespace {

// Devices tell in different ways that their memory is full.
bool mayBeForWantOfMemory(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kOutOfMemory:
    case ErrorCode::kOpFailed:
    case ErrorCode::kUnavailableDevice:
    case ErrorCode::kResourceExhaustedTransient:
    case ErrorCode::kResourceExhaustedPersistent:
      return true;
    default:
      return false;
  }
}

}  // namespace

// That the caller makes the model of a place. The place has it, or is free, when this ends.
class SharedModels::Work {
 public:
  Work(SharedModels* models, Place* place) : models_(models), place_(place) {
    place_->isInWork = true;
  }
  ~Work() {
    const std::lock_guard lock(models_->mutex_);
    place_->isInWork = false;
    place_->model = model_;
    models_->changed_.notify_all();
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  void setModel(std::weak_ptr<const ServedModel> model) { model_ = std::move(model); }

 private:
  SharedModels* const models_;
  Place* const place_;
  std::weak_ptr<const ServedModel> model_;
};

SharedModels::SharedModels(size_t kept) : mostKept_(kept), memories_(SIZE_MAX, UINT64_MAX) {}

SharedModels::Kept SharedModels::keep(const std::shared_ptr<const ServedModel>& model) {
  Kept ended;
  if (mostKept_ == 0) return ended;
  const auto known = std::ranges::find(kept_, model);
  if (known != kept_.end())
    kept_.splice(kept_.begin(), kept_, known);
  else
    kept_.push_front(model);
  if (kept_.size() > mostKept_) ended.splice(ended.begin(), kept_, std::prev(kept_.end()));
  return ended;
}

Result<SharedModels::Taken> SharedModels::take(const ModelIdentity& identity,
                                               const base::Deadline& deadline, const Make& make) {
  Kept ended;
  std::unique_lock lock(mutex_);
  std::erase_if(places_, [](const auto& entry) {
    return !entry.second.isInWork && entry.second.model.expired();
  });
  while (true) {
    Place& place = places_[identity.digest()];
    if (auto model = place.model.lock()) {
      ended = keep(model);
      return Taken{std::move(model), false};
    }
    if (!place.isInWork) {
      Work work(this, &place);
      lock.unlock();
      auto made = make();
      if (!made && mayBeForWantOfMemory(made.error())) {
        lock.lock();
        ended.swap(kept_);
        lock.unlock();
        const bool wereAny = !ended.empty();
        ended.clear();
        if (wereAny) made = make();
      }
      if (!made) return std::unexpected(std::move(made).error());
      // A file that was changed meanwhile has other bytes than the next client will find.
      if (identity.isUnchanged()) {
        work.setModel(*made);
        lock.lock();
        ended = keep(*made);
        lock.unlock();
      }
      return Taken{*std::move(made), true};
    }
    if (deadline.isNever()) {
      changed_.wait(lock);
    } else if (changed_.wait_until(lock, deadline.when()) == std::cv_status::timeout) {
      return fail(ErrorCode::kMissedDeadlinePersistent,
                  "The deadline passes while the same model is prepared for another client.");
    }
  }
}

void SharedModels::forget(const std::shared_ptr<const ServedModel>& model) {
  const std::lock_guard lock(mutex_);
  for (auto& [identity, place] : places_)
    if (place.model.lock() == model) place.model.reset();
  // It does not end here: the caller has it.
  std::erase(kept_, model);
}

size_t SharedModels::count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::ranges::count_if(
      places_, [](const auto& entry) { return !entry.second.model.expired(); }));
}

hal::StartReport reportOfShared(hal::StartReport report) {
  using State = hal::StartReport::State;
  report.sharedBytes += report.mappedBytes;
  for (const auto& [kind, bytes] : report.packedBytes) report.sharedBytes += bytes;
  report.mappedBytes = 0;
  report.packedBytes.clear();
  report.repackedBytes = 0;
  report.hashedBytes = 0;
  report.cacheProblem.clear();
  if (report.state == State::kCold) {
    report.state = State::kWarm;
    report.reason.clear();
  }
  return report;
}

}  // namespace hearth::ipc
