// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/mutex.h"
#include "base/sha256.h"
#include "drivers/cpu/weights/packed_segment.h"

namespace hearth::cpu {

// A packing that other prepared models of this process can use. Value type.
struct SharedPacking {
  std::shared_ptr<PackedSegment> segment;
  uint32_t seed = 0;  // XNNPACK's, of the packing function
};

// The large packings of this process, by what was packed. Signatures and compilations of one model
// share them from the first start on, without hashing weights. Thread-safe.
class SharedPackings {
 public:
  static SharedPackings& instance();

  // `source` is PlanBuilder::packingSource() of the operation. The segment of the result is null
  // when there is none.
  SharedPacking find(const base::Sha256Digest& source);
  // Others can find the packing as long as its segment has an owner; this keeps a weak reference.
  void add(const base::Sha256Digest& source, const SharedPacking& packing);

 private:
  struct Entry {
    std::weak_ptr<PackedSegment> segment;
    uint32_t seed = 0;
  };
  base::Mutex mutex_;
  std::map<base::Sha256Digest, Entry> entries_;
  size_t nextSweep_ = 64;  // number of entries at which those without a segment are removed
};

}  // namespace hearth::cpu
