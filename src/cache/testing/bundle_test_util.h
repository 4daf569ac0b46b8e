// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of bundles.
#pragma once

#include <utility>
#include <vector>

#include "cache/bundle/bundle_store.h"
#include "cache/testing/store_test_util.h"

namespace hearth::cache {

// A test with a bundle in a folder of its own.
class BundleTest : public testing::Test {
 protected:
  explicit BundleTest(TempFolder::Place place = TempFolder::Place::kMemory) : folder_(place) {}
  std::filesystem::path path() const { return folder_.path() / "model.bundle"; }
  std::filesystem::path building() const { return path().string() + ".building"; }
  StoreOptions options() const { return {.bundle = path().string()}; }
  // Options of a process before a boot, and of one after it.
  std::pair<StoreOptions, StoreOptions> optionsOfTwoBoots() const {
    std::pair both(options(), options());
    both.first.boot = parseBootId("01234567-89ab-cdef-0123-456789abcdef");
    both.second.boot = parseBootId("fedcba98-7654-3210-fedc-ba9876543210");
    return both;
  }
  StoreOptions strict() const {
    StoreOptions result = options();
    result.mode = StoreMode::kStrict;
    return result;
  }
  static std::shared_ptr<BundleStore> open(const StoreOptions& options) {
    auto store = BundleStore::open(options);
    EXPECT_TRUE(store) << store.error().message;
    return store.value_or(nullptr);
  }
  std::shared_ptr<BundleStore> open() const { return open(options()); }

  static StoreResult<SegmentRef> publish(SegmentStore& store, const SegmentKey& key,
                                         std::span<const uint8_t> bytes) {
    StoreResult<SegmentRef> result;
    store.publishAsync({.key = key, .payload = bytes, .done = [&](StoreResult<SegmentRef> given) {
                          result = std::move(given);
                        }});
    store.flush();
    return result;
  }

  static constexpr size_t kSizes[] = {100, 5000, (1u << 20) + 17, (2u << 20) + 9, 4096};
  static std::vector<SegmentKey> keys() {
    std::vector<SegmentKey> result;
    for (size_t i = 0; i < std::size(kSizes); ++i) result.push_back(segmentKey(i));
    return result;
  }
  static std::vector<uint8_t> bytesOf(size_t index) { return payload(index, kSizes[index]); }

  // A cold start; returns 0 on success.
  static int build(SegmentStore& store, uint64_t plan = 1) {
    for (size_t i = 0; i < std::size(kSizes); ++i) {
      BuildTicket ticket = store.acquire(keys()[i], std::chrono::seconds(120));
      SegmentRef segment = ticket.segment();
      if (ticket.role() == BuildTicket::Role::kAlone) return 1;
      if (ticket.role() == BuildTicket::Role::kBuild) {
        auto published = publish(store, keys()[i], bytesOf(i));
        if (!published) return 2;
        segment = *published;
      }
      if (!equal(segment->bytes(), bytesOf(i))) return 3;
    }
    if (store.findPlan(planKey(plan))) return 0;
    const auto published = store.publishPlan(planKey(plan), payload(100 + plan, 3000), keys());
    return published ? 0 : 4;
  }

  TempFolder folder_;
};

}  // namespace hearth::cache
