// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/descriptor.h"
#include "cache/object/object_file.h"
#include "cache/object/store_failure.h"
#include "cache/object/store_key.h"

namespace hearth::cache {

// The folders of one store. They are held open, so that all work goes to the same store even if its
// path is renamed or replaced:
//
//   segments/ab/<62 digits>.seg   on disk for good; .new = written, maybe not on disk yet
//   plans/<64 digits>.plan
//   stamps/<64 digits>            modified when the plan of that key was last loaded
//   tmp/                          files being written
//   machine.blobs                 what drivers found out about this machine (store_facts.h)
//   build.lock, identity.sqlite, identity.latest
//
// Immutable after open; thread-safe.
class StoreFolder {
 public:
  enum class Access { kRead, kWrite };

  // Opens the store at `path`. kWrite creates what is missing, parents included (0700). With kRead
  // a missing folder inside is no error. Errors as openFolder.
  static StoreResult<std::shared_ptr<const StoreFolder>> open(const std::string& path,
                                                              Access access);

  const std::string& path() const { return path_; }
  bool isWritable() const { return access_ == Access::kWrite; }
  int root() const { return root_.get(); }
  int segments() const { return segments_.get(); }
  int plans() const { return plans_.get(); }
  int stamps() const { return stamps_.get(); }
  int temporary() const { return temporary_.get(); }

  // Whether the folder was deleted: no file can be created in it any more.
  bool isGone() const;

  // Relative to segments().
  static std::string segmentPath(const SegmentKey& key, bool durable);
  // Opens the folder that holds a segment; segmentName() is relative to it. Errors as openFolder.
  StoreResult<base::Descriptor> openShard(const SegmentKey& key, bool create) const;
  static std::string segmentName(const SegmentKey& key, bool durable);
  // Relative to plans().
  static std::string planName(const PlanKey& key) { return key.hex() + ".plan"; }

 private:
  StoreFolder() = default;

  std::string path_;
  Access access_ = Access::kRead;
  base::Descriptor root_;
  base::Descriptor segments_;
  base::Descriptor plans_;
  base::Descriptor stamps_;
  base::Descriptor temporary_;
};

}  // namespace hearth::cache
