// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the blob cache.
#pragma once

#include <memory>
#include <string>

#include "cache/blob/blob_cache.h"
#include "cache/testing/store_test_util.h"

namespace hearth::cache {

// A test with a blob cache in a store's folder. Each object acts like that of another process.
class BlobCacheTest : public testing::Test {
 protected:
  static constexpr char kName[] = "test.blobs";

  explicit BlobCacheTest(TempFolder::Place place = TempFolder::Place::kMemory) : folder_(place) {}
  std::filesystem::path root() const { return folder_.path() / "store"; }
  std::filesystem::path file() const { return root() / kName; }
  std::shared_ptr<const StoreFolder> store(
      StoreFolder::Access access = StoreFolder::Access::kWrite) const {
    auto opened = StoreFolder::open(root().string(), access);
    if (!opened) {
      ADD_FAILURE() << opened.error().message;
      return nullptr;
    }
    return *opened;
  }
  std::unique_ptr<BlobCache> open(const BlobLimits& limits = {}, BlobPolicy policy = {}) const {
    return std::make_unique<BlobCache>(store(), kName, limits, policy);
  }
  static std::string keyOf(uint64_t number) { return "key " + std::to_string(number); }
  static std::vector<uint8_t> valueOf(uint64_t number) { return payload(number, 50 + number % 50); }
  static bool has(BlobCache& cache, uint64_t number) {
    return cache.get(keyOf(number)) == valueOf(number);
  }
  // Temporary files that were not removed.
  size_t leftovers() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(root() / "tmp"), {}));
  }

  TempFolder folder_;
};

}  // namespace hearth::cache
