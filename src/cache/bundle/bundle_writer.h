// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "base/descriptor.h"
#include "base/mutex.h"
#include "cache/bundle/bundle_file.h"
#include "cache/bundle/bundle_notes.h"
#include "cache/object/store_failure.h"

namespace hearth::cache {

// A bundle that is being written, in NAME.building beside its final place. A lock on that file
// shows that a process is writing. What a killed process left there, the next writer removes.
// Segments can be read at once. Unless finished, the file is removed; mappings of it stay valid.
// find() and segments() are thread-safe; the rest is for one thread at a time.
class BundleWriter {
 public:
  // Errors: kBusy while another process writes, kForeign when something else is in the way,
  // kReadOnly, kNoSpace, kIoError.
  static StoreResult<std::unique_ptr<BundleWriter>> start(int folder, const std::string& name,
                                                          const BootId& boot);
  // If another process is writing: its file, whose generation changes as it makes progress.
  static std::optional<FileGeneration> otherProgress(int folder, const std::string& name);
  ~BundleWriter();
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;

  int fd() const { return descriptor_.get(); }
  std::optional<SegmentInfo> find(const SegmentKey& key) const;
  // All segments that were added or copied.
  std::vector<SegmentInfo> segments() const;
  bool isEmpty() const;

  // Adds a segment. Errors: kNoSpace, kIoError, kBadRequest; what was written before stays.
  StoreResult<SegmentInfo> add(const SegmentKey& key, const SegmentPayload& payload);
  // Copies a segment of another bundle. Errors as add(), and kCorrupt when it has changed.
  StoreResult<SegmentInfo> copy(int from, const SegmentInfo& info);

  // Writes index, notes and head, and renames the file to its final place, replacing what is there.
  // Nothing can be added afterwards. `plan` names only segments that were added; `facts` keep
  // kFactLimits. Errors as add(), and kAbsent when a segment is missing.
  StoreResult<BundleInfo> finish(PlanContent plan, BlobMap facts, BundleNotes& notes);

  // Another descriptor of the file, for reading it when this object is gone. Error: kIoError.
  StoreResult<base::Descriptor> duplicate() const;

  // For a forked child: closes its copy of the file, so that only the parent, which goes on
  // writing, has the lock.
  void closeInChild() { descriptor_.reset(); }

 private:
  BundleWriter(int folder, std::string name, const BootId& boot)
      : folder_(folder), name_(std::move(name)), boot_(boot) {}
  bool isInPlace() const;

  const int folder_;  // outlives this
  const std::string name_;
  const BootId boot_;
  base::Descriptor descriptor_;
  bool isFinished_ = false;
  uint64_t end_ = 0;
  mutable base::Mutex mutex_;
  std::unordered_map<SegmentKey, SegmentInfo> segments_;  // guarded by mutex_
};

}  // namespace hearth::cache
