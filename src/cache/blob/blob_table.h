// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::cache {

// What a table takes at most, in bytes; below 4 GiB each.
struct BlobLimits {
  uint64_t maxKeyBytes = 256;
  uint64_t maxValueBytes = uint64_t{16} << 10;
  uint64_t maxBytes = uint64_t{128} << 10;  // keys and values of all entries
};

enum class BlobEviction {
  kLeastRecentlyUsed,
  kRandom,
};

// How far entries are evicted for one that does not fit.
enum class BlobRoom {
  kFit,          // until it fits
  kHalve,        // until half of the limit is free; what needs more is not taken
  kFitAndHalve,  // until both
};

struct BlobPolicy {
  BlobEviction eviction = BlobEviction::kLeastRecentlyUsed;
  BlobRoom room = BlobRoom::kFit;
};

struct Blob {
  std::vector<uint8_t> value;
  int64_t used = 0;  // nanoseconds since 1970
  bool operator==(const Blob&) const = default;
};
using BlobMap = std::map<std::string, Blob, std::less<>>;

// Values under keys, within limits. Keys are any bytes. Not thread-safe.
class BlobTable {
 public:
  BlobTable(const BlobLimits& limits, BlobPolicy policy) : limits_(limits), policy_(policy) {}

  const BlobMap& blobs() const { return blobs_; }
  // Keys and values of all entries.
  uint64_t bytes() const { return bytes_; }
  // Null when there is none; valid until the table changes.
  const Blob* find(std::string_view key) const;

  // Adds or replaces an entry, and evicts others for it. Nothing changes, and the result is false,
  // for a key or value that is empty or beyond its limit, and where no room can be made; under
  // kHalve, others may have been evicted then.
  bool set(std::string_view key, std::span<const uint8_t> value, int64_t used);
  // Notes that an entry was used.
  void touch(std::string_view key, int64_t used);
  // False when there is none.
  bool erase(std::string_view key);

  // Adds or replaces an entry that may be too much for the table until fit() is called. False as
  // with set() where key or value alone are.
  bool insert(std::string key, Blob blob);
  void fit();

 private:
  bool isAllowed(uint64_t keyBytes, uint64_t valueBytes) const;
  // Evicts entries other than `spared`, which is not counted, until these have `bytes` at most.
  void evictTo(uint64_t bytes, std::string_view spared);

  BlobLimits limits_;
  BlobPolicy policy_;
  BlobMap blobs_;
  uint64_t bytes_ = 0;
};

}  // namespace hearth::cache
