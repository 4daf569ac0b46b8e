// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/fork_aware.h"
#include "base/mutex.h"
#include "cache/bundle/bundle_file.h"
#include "cache/segment/block_checks.h"
#include "cache/store/disk_store.h"

namespace hearth::cache {

struct BundleFile;
struct BundleParts;
class BundleWriter;

// A bundle as one process uses it: one file with a plan and all its segments. Publishing a plan of
// another key, or a plan whose segments were dropped, replaces the file by a new one; processes
// that have the old file open keep it. A file that is not a bundle is never touched. The options'
// size limit and system stores do not apply.
class BundleStore final : public DiskStore, public std::enable_shared_from_this<BundleStore> {
 public:
  // Opens the bundle options.bundle. All callers in the process share one object while one of them
  // holds it. Errors, when it cannot be used at all: kOff, kBadRequest, kGone (no such folder),
  // kForeign (something else is in its place).
  static StoreResult<std::shared_ptr<BundleStore>> open(const StoreOptions& options);
  ~BundleStore() override;

  StoreFailure writability() const override;
  FoundSegment find(const SegmentKey& key) override;
  // kOtherPlan, with a sentence, when the bundle holds another plan.
  StoreResult<PlanRef> findPlan(const PlanKey& key) override;
  std::optional<PlanDescription> heldPlan() override;
  std::optional<std::vector<uint8_t>> recall(std::string_view key) override;
  // Facts of 32 bytes, not all zero, become notes, which costs nothing. Larger ones are written in
  // the background, into a new file with a copy of everything else.
  void remember(std::span<const Fact> facts) override;

 private:
  explicit BundleStore(std::unique_ptr<BundleParts> parts);
  void renewInChild() override;
  StoreWorkers& workers() const override;
  std::shared_ptr<BuildLock> builders() override;
  // One process builds the whole bundle; others wait for it while its file grows.
  BuildTicket beginBuilding(const SegmentKey& key, std::chrono::nanoseconds patience,
                            BuildLock::Hold hold) override;
  // Writes the segments that publishAsync has finished and what is right in the old bundle. kBusy
  // while another process writes the bundle.
  StoreResult<PlanRef> keepPlan(PlanContent content) override;
  ContentDigests contentDigests() override;

  StoreStatus refresh();
  SegmentRef share(const SegmentKey& key, SegmentRef segment);
  StoreResult<SegmentRef> load(const std::shared_ptr<BundleFile>& file, const SegmentInfo& info);
  void checkLater(const std::shared_ptr<BundleFile>& file);
  StoreStatus checkBlocks(BundleFile& file, uint64_t from, const BlockProgress& progress);
  void drop(BundleFile& file, const SegmentKey& key, const StoreFailure& why);
  StoreResult<std::shared_ptr<BundleWriter>> writer();
  SegmentRef findSame(const SegmentKey& key, std::span<const uint8_t> right);
  BlobMap factsBeside(const BundleFile* old, const PlanKey& key);
  void writeFacts();
  void stopIfUnused(std::shared_ptr<BundleWriter> writer);
  // The segment can be read at once, but is lost unless a plan that names it follows.
  StoreResult<SegmentRef> publish(const SegmentKey& key, const SegmentPayload& payload) override;
  void makeDurable(const std::shared_ptr<BundleFile>& file);

  BundleParts* parts_;  // of this process; a forked child makes its own
};

}  // namespace hearth::cache
