// SPDX-License-Identifier: Apache-2.0
#include "cache/store/corruption_handlers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace hearth::cache {
namespace {

// A handler may wait for a thread of the store, which calls handlers, too, or for a fork, which
// waits for the handlers' lock. If the lock were held, it would wait for ever.
TEST(CorruptionHandlers, AreCalledWithoutTheirLock) {
  const auto handlers = std::make_shared<CorruptionHandlers>();
  std::shared_ptr<void> first;
  std::shared_ptr<void> second;
  std::atomic<int> calls = 0;
  first = handlers->add([&](const SegmentKey& key) {
    if (++calls != 1) return;
    std::thread([&] { handlers->call(key); }).join();
    second = handlers->add([&](const SegmentKey&) { calls += 10; });
    first.reset();
  });
  handlers->call(SegmentKey());
  EXPECT_EQ(calls, 2);
  handlers->call(SegmentKey());
  EXPECT_EQ(calls, 12);
  second.reset();
  handlers->call(SegmentKey());
  EXPECT_EQ(calls, 12);
}

}  // namespace
}  // namespace hearth::cache
