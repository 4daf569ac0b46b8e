// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/blob/blob_table.h"
#include "cache/object/store_folder.h"
#include "cache/object/store_key.h"
#include "cache/plan/plan_file.h"

namespace hearth::cache {

// What a store holds at one moment; other processes may change it at any time. Value type.
struct StoreInventory {
  struct Plan {
    PlanKey key;
    BuildFingerprint fingerprint{};
    std::vector<SegmentKey> segments;
    PlanDescription description;
    uint64_t bytesOnDisk = 0;
    int64_t lastUsed = 0;  // nanoseconds since 1970
    bool isInUse = false;  // by a loaded model of any process
    bool isCorrupt = false;
  };
  struct Segment {
    uint64_t bytesOnDisk = 0;
    int64_t written = 0;  // nanoseconds since 1970
    bool isDurable = false;
    uint32_t plans = 0;  // how many plans use it
  };
  struct Other {  // names are relative to the folder
    std::string name;
    uint64_t bytesOnDisk = 0;
    int64_t changed = 0;
    bool isLocked = false;
  };

  // What drivers remember (SegmentStore::remember). Its size does not count towards the store's
  // limit.
  struct Facts {
    static Facts of(const BlobMap& blobs);
    struct Entry {
      std::string kind;  // the key up to its first zero byte
      uint64_t bytes = 0;
      int64_t lastUsed = 0;  // nanoseconds since 1970
    };
    std::vector<Entry> entries;
    uint64_t bytesOnDisk = 0;
    bool isCorrupt = false;  // or it belongs to somebody else
  };

  std::vector<Plan> plans;
  std::unordered_map<SegmentKey, Segment> segments;
  std::vector<Other> temporaries;
  std::vector<Other> stamps;
  Facts facts;
  uint64_t bytesOnDisk = 0;  // of plans, segments and temporary files

  // Reads the store. Plans that cannot be read count as corrupt; other unreadable entries are left
  // out.
  static StoreInventory of(const StoreFolder& folder);
  // The same as of(folder).bytesOnDisk, but cheaper.
  static uint64_t bytesOf(const StoreFolder& folder);
};

}  // namespace hearth::cache
