// SPDX-License-Identifier: Apache-2.0
#include "cache/folder/plan_table.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ranges>

#include "base/crash_point.h"
#include "base/format.h"
#include "base/log.h"

namespace hearth::cache {
namespace {

// Marks a plan as used now, in a file of its own: the plan itself is never written again.
void stamp(const StoreFolder& folder, const PlanKey& key) {
  if (!folder.isWritable()) return;
  const base::Descriptor file = openTrusted(folder.stamps(), key.hex().c_str(), O_WRONLY | O_CREAT);
  if (file.valid()) ::futimens(file.get(), nullptr);
}

}  // namespace

StoreResult<PlanRef> PlanTable::find(const PlanKey& key) {
  StoreFailure failure{StoreReason::kAbsent, base::formatText("There is no plan {}.", key.hex())};
  for (int attempt = 0; attempt < 2; ++attempt) {
    // The user's own plan first: it may have completed one of a system store.
    for (const FolderRef& folder : std::views::reverse(folders_.searchOrder())) {
      auto plan = load(*folder, key);
      if (plan) return plan;
      if (plan.error().reason != StoreReason::kAbsent) failure = std::move(plan.error());
    }
    if (failure.reason != StoreReason::kAbsent || !folders_.reopenIfGone()) break;
  }
  return std::unexpected(std::move(failure));
}

StoreResult<PlanRef> PlanTable::load(const StoreFolder& folder, const PlanKey& key) {
  const std::string name = StoreFolder::planName(key);
  HEARTH_ASSIGN(ObjectFile file, openObject(folder.plans(), name));
  auto content = readPlanFile(file.descriptor.get(), file.generation.size, key);
  if (!content) {
    if (content.error().reason == StoreReason::kCorrupt && folder.isWritable()) {
      base::logWarn("A wrong plan in {} is dropped. {}", folder.path(), content.error().message);
      (void)removeFile(folder.plans(), name);
    }
    return std::unexpected(std::move(content.error()));
  }
  lockShared(file.descriptor.get());
  // Garbage collection may have removed the plan just before the lock.
  struct stat status;
  if (::fstat(file.descriptor.get(), &status) != 0 || status.st_nlink == 0)
    return storeFail(StoreReason::kAbsent, "The plan {} has just been removed.", key.hex());
  stamp(folder, key);
  return std::make_shared<LoadedPlan>(std::move(*content), std::move(file.descriptor));
}

StoreResult<PlanRef> PlanTable::write(PlanContent content) {
  content.fingerprint = folders_.options().fingerprint;
  HEARTH_ASSIGN(const std::vector<uint8_t> file, makePlanFile(content));
  for (int attempt = 0;; ++attempt) {
    HEARTH_ASSIGN(const FolderRef folder, folders_.writable());
    auto plan = writeIn(*folder, file, content);
    if (plan || plan.error().reason != StoreReason::kGone || attempt > 0 ||
        !folders_.reopenIfGone())
      return plan;
  }
}

StoreResult<PlanRef> PlanTable::writeIn(const StoreFolder& folder, std::span<const uint8_t> file,
                                        const PlanContent& content) {
  HEARTH_ASSIGN(TempObject object, TempObject::create(folder.temporary()));
  HEARTH_TRY(writeAt(object.fd(), file.data(), file.size(), 0));
  HEARTH_CRASH_POINT("plan.after_write");
  HEARTH_TRY(object.placeAt(folder.plans(), StoreFolder::planName(content.key)));
  stamp(folder, content.key);
  HEARTH_CRASH_POINT("plan.after_stamp");
  return std::make_shared<LoadedPlan>(content, object.intoShared());
}

}  // namespace hearth::cache
