// SPDX-License-Identifier: Apache-2.0
// What one process knows of a bundle that it has open.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/sha256.h"
#include "cache/blob/blob_table.h"
#include "cache/bundle/bundle_file.h"
#include "cache/bundle/bundle_notes.h"
#include "cache/bundle/bundle_writer.h"
#include "cache/object/boot_id.h"
#include "cache/object/build_lock.h"
#include "cache/object/object_file.h"
#include "cache/store/corruption_handlers.h"
#include "cache/store/disk_store.h"

namespace hearth::cache {

// A bundle that was found in its place or written there.
struct BundleFile {
  base::Descriptor descriptor;
  FileGeneration generation;
  BundleInfo info;
  PlanRef plan;
  std::unordered_map<SegmentKey, size_t> index;  // into info.content.segments
  bool isDoubtful = false;                       // a power failure may have damaged it
  std::atomic<bool> isCheckQueued = false;
  base::Mutex mutex;
  std::unordered_set<SegmentKey> checked;  // before use; guarded by mutex
  std::unordered_set<SegmentKey> wrong;    // guarded by mutex

  // To be called once descriptor, generation and info are set.
  void prepare() {
    plan = std::make_shared<LoadedPlan>(info.content.plan, base::Descriptor());
    for (size_t i = 0; i < info.content.segments.size(); ++i)
      index.emplace(info.content.segments[i].key, i);
  }

  base::Sha256Digest noteKey(const char* what, const BootId& boot) const {
    base::Sha256 hash;
    hash.update(what, std::char_traits<char>::length(what));
    const base::Sha256Digest identity = info.head.identity();
    hash.update(identity);
    hash.update(boot);
    return hash.finish();
  }
  base::Sha256Digest durableNote() const { return noteKey("durable", BootId{}); }
  // Holds for this boot, and while nobody else writes to the file.
  base::Sha256Digest checkedNote(const BootId& boot) const {
    base::Sha256 hash;
    hash.update(noteKey("checked", boot));
    hash.update(&generation.modified, sizeof generation.modified);
    return hash.finish();
  }
  bool isDropped() {
    const std::lock_guard lock(mutex);
    return !wrong.empty();
  }
  // Whether the file in the bundle's place is this one, unchanged since it was opened.
  bool isStill(const FileGeneration& there) const {
    return there.device == generation.device && there.inode == generation.inode &&
           there.size == generation.size && there.modified == generation.modified;
  }
};

// A segment in a bundle whose plan does not name it: it belongs to another start, which goes on.
struct LeftSegment {
  std::shared_ptr<const base::Descriptor> file;
  SegmentInfo info;
};

struct BundleParts : StoreWorkers {
  BundleParts(StoreOptions storeOptions, base::Descriptor storeFolder, std::string storeName)
      : StoreWorkers("hearth-bundle", checkMemory(this), std::make_shared<CorruptionHandlers>()),
        options(std::move(storeOptions)),
        boot(options.boot.value_or(currentBootId())),
        folder(std::make_shared<base::Descriptor>(std::move(storeFolder))),
        name(std::move(storeName)) {}
  // The parts of a forked child.
  explicit BundleParts(const BundleParts& parent, std::nullptr_t)
      : StoreWorkers("hearth-bundle", checkMemory(this), parent.handlers),
        options(parent.options),
        boot(parent.boot),
        folder(parent.folder),
        name(parent.name),
        notes(parent.notes),
        current(parent.current),
        reason(parent.reason),
        mapped(parent.mapped),
        newFacts(parent.newFacts) {}

  static BlockChecks::Memory checkMemory(BundleParts* self) {
    return {.isLasting = [self] { return self->boot != BootId{} && self->notes->isWritable(); },
            .recall =
                [self](std::span<const base::Sha256Digest> ids) {
                  std::vector<uint64_t> blocks;
                  for (const base::Sha256Digest& id : ids)
                    blocks.push_back(self->notes->checkedBlocks(id));
                  return blocks;
                },
            .remember =
                [self](std::span<const CheckedBlocks> checks) {
                  for (const auto& [id, blocks, isAll] : checks)
                    self->notes->rememberCheckedBlocks(id, blocks, isAll);
                }};
  }

  const StoreOptions options;
  const BootId boot;
  const std::shared_ptr<base::Descriptor> folder;
  const std::string name;  // relative to the folder
  const std::shared_ptr<BundleNotes> notes = std::make_shared<BundleNotes>();

  base::Mutex mutex;
  // The members up to the blank line are guarded by it.
  std::shared_ptr<BundleFile> current;
  StoreFailure reason{StoreReason::kAbsent, "There is no bundle yet."};  // why current is null
  StoreFailure writeFailure;
  std::shared_ptr<BundleWriter> writer;
  std::unordered_map<SegmentKey, LeftSegment> left;  // for later plans
  std::unordered_map<SegmentKey, std::weak_ptr<const Segment>> mapped;
  std::optional<FileGeneration> hopeless;  // the other writer that this process waited for in vain
  BlobMap newFacts;                        // not yet in the file

  std::mutex writing;  // taken before mutex, by users of the writer
  const std::shared_ptr<BuildLock> buildLock = BuildLock::inProcess();
};

}  // namespace hearth::cache
