// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/corruption_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cache/testing/memory_store_test.h"

namespace hearth::cpu {
namespace {

using cache::SegmentKey;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr size_t kSize = 5000;

class CorruptionWatchTest : public cache::MemoryStoreTest {
 protected:
  // What a handler was called for.
  class Calls {
   public:
    CorruptionWatch::Handler handler() {
      return [all = all_](const SegmentKey& key) {
        const std::lock_guard lock(all->mutex);
        all->keys.push_back(key);
      };
    }
    std::vector<SegmentKey> keys() const {
      const std::lock_guard lock(all_->mutex);
      return all_->keys;
    }

   private:
    struct All {
      std::mutex mutex;
      std::vector<SegmentKey> keys;
    };
    const std::shared_ptr<All> all_ = std::make_shared<All>();
  };

  // Stores a segment, and a wrong byte in its file.
  void storeDamaged(uint64_t number) const {
    const SegmentKey key = cache::segmentKey(number);
    {
      const auto store = open();
      ASSERT_TRUE(store->publish(key, cache::payload(number, kSize)));
      store->settle();
    }
    std::vector<uint8_t> file = cache::readFile(segmentPath(key));
    ASSERT_GT(file.size(), kSize);
    file[100] ^= 1;
    cache::writeFile(segmentPath(key), file);
  }

  // Weights that use the segment.
  static std::unique_ptr<PackedWeights> weightsIn(cache::SegmentStore& store, uint64_t number) {
    auto weights = std::make_unique<PackedWeights>(true);
    cache::FoundSegment found = store.find(cache::segmentKey(number));
    EXPECT_TRUE(found);
    if (found)
      weights->preset({0, 0},
                      {std::make_shared<PackedSegment>(std::move(found.segment)), 0, kSize, 1});
    return weights;
  }
};

TEST_F(CorruptionWatchTest, HearsOfASegmentThatIsFoundWrong) {
  storeDamaged(1);
  const auto store = open();
  const auto weights = weightsIn(*store, 1);
  Calls calls;
  const CorruptionWatch watch(store, *weights, calls.handler());
  store->flush();
  EXPECT_THAT(calls.keys(), IsEmpty());
  store->checkBeforeExit();
  store->flush();
  EXPECT_THAT(calls.keys(), ElementsAre(cache::segmentKey(1)));
}

TEST_F(CorruptionWatchTest, HearsOfASegmentThatWasFoundWrongBefore) {
  storeDamaged(1);
  const auto store = open();
  const auto weights = weightsIn(*store, 1);
  store->checkBeforeExit();
  Calls calls;
  const CorruptionWatch watch(store, *weights, calls.handler());
  store->flush();
  EXPECT_THAT(calls.keys(), ElementsAre(cache::segmentKey(1)));
}

TEST_F(CorruptionWatchTest, HearsNothingWhenItIsOver) {
  storeDamaged(1);
  const auto store = open();
  const auto weights = weightsIn(*store, 1);
  Calls calls;
  std::optional<CorruptionWatch> watch(std::in_place, store, *weights, calls.handler());
  watch.reset();
  store->checkBeforeExit();
  store->flush();
  EXPECT_THAT(calls.keys(), IsEmpty());
}

}  // namespace
}  // namespace hearth::cpu
