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

// The limits of a table in bytes; each is below 4 GiB.
struct BlobLimits {
  uint64_t maxKeyBytes = 256;
  uint64_t maxValueBytes = uint64_t{16} << 10;
  uint64_t maxBytes = uint64_t{128} << 10;  // keys and values of all entries
};

enum class BlobEviction {
  kLeastRecentlyUsed,
  kRandom,
};

// How many entries are evicted for one that does not fit.
enum class BlobRoom {
  kFit,          // until it fits
  kHalve,        // until half of the limit is free; an entry that needs more is refused
  kFitAndHalve,  // until both hold
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

// Values under keys, within limits. A key is any bytes. Not thread-safe.
class BlobTable {
 public:
  BlobTable(const BlobLimits& limits, BlobPolicy policy) : limits_(limits), policy_(policy) {}

  const BlobMap& blobs() const { return blobs_; }
  // The size of all keys and values.
  uint64_t bytes() const { return bytes_; }
  // Null when there is none; valid until the table changes.
  const Blob* find(std::string_view key) const;

  // Adds or replaces an entry, and evicts others for it. Returns false, and changes nothing, if the
  // key or value is empty or beyond its limit, or if no room can be made; with kHalve, other
  // entries may have been evicted then.
  bool set(std::string_view key, std::span<const uint8_t> value, int64_t used);
  // Marks an entry as used.
  void touch(std::string_view key, int64_t used);
  // False when there is none.
  bool erase(std::string_view key);

  // Adds or replaces an entry, even if the table then exceeds its limit until fit() is called.
  // Returns false, as set() does, if the key or value alone is refused.
  bool insert(std::string key, Blob blob);
  void fit();

 private:
  bool isAllowed(uint64_t keyBytes, uint64_t valueBytes) const;
  // Evicts entries other than `spared`, which does not count, until the others have at most
  // `bytes`.
  void evictTo(uint64_t bytes, std::string_view spared);

  BlobLimits limits_;
  BlobPolicy policy_;
  BlobMap blobs_;
  uint64_t bytes_ = 0;
};

}  // namespace hearth::cache
