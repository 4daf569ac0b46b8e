// SPDX-License-Identifier: Apache-2.0
// Starts of hearth-cpu with the weight store: cold, warm, and everything in between.
#include "drivers/cpu/weights/weight_session.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "base/crash_point.h"
#include "base/fork_test_util.h"
#include "cache/identity/content_hash.h"
#include "cache/open_store.h"
#include "drivers/cpu/testing/weight_session_test_util.h"
#include "drivers/cpu/weights/packing_map.h"

namespace hearth::cpu {
namespace {

using ::testing::HasSubstr;

// Kilobytes of the mapping at `address` that are in this process's page table.
size_t residentKib(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  bool isInside = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      isInside = wanted >= begin && wanted < end;
    size_t kib = 0;
    if (isInside && std::sscanf(line.c_str(), "Rss: %zu kB", &kib) == 1) return kib;
  }
  ADD_FAILURE() << "no mapping at " << address;
  return 0;
}

TEST_F(WeightSessionTest, TheSecondStartPacksNothing) {
  const TestModel test(1);
  save(test);
  std::vector<float> expected;
  {
    const Start cold = start(test);
    EXPECT_EQ(cold.report.state, State::kCold);
    EXPECT_EQ(cold.report.reason, "first start of this model");
    EXPECT_GT(cold.packed(), uint64_t{4} << 20);
    expected = cold.output;
    settle();
  }
  const Start warm = start(test);
  EXPECT_EQ(warm.report.state, State::kWarm) << warm.report.reason;
  EXPECT_EQ(warm.report.reason, "");
  EXPECT_EQ(warm.packed(), 0u);
  // XNNPACK packs small depthwise filters at each start where no kernel of ours takes the layer.
  EXPECT_LT(warm.report.repackedBytes, uint64_t{64} << 10);
  EXPECT_GT(warm.report.mappedBytes, uint64_t{4} << 20);
  EXPECT_EQ(warm.output, expected);
  // No page of the weights was read from the model's file.
  EXPECT_LE(residentKib(warm.pool->data()), 4u);
}

TEST_F(WeightSessionTest, PackedWeightsBecomePagesOfTheStore) {
  const TestModel test(1);
  save(test);
  const Start cold = start(test);
  settle();
  // The same kernels run on bytes that are now mapped from the store.
  const Start again = start(test);
  EXPECT_EQ(again.output, cold.output);
  // Three segments (convolution, matrix, small packings), each mapped by both starts.
  EXPECT_GE(mappedSegments(), 6u);
}

TEST_F(WeightSessionTest, AModelRewrittenInPlaceIsPackedAnew) {
  const TestModel before(1);
  const TestModel after(2);
  ASSERT_EQ(before.file.size(), after.file.size());
  save(before);
  const Start first = start(before);
  settle();
  save(after);
  const Start changed = start(after);
  settle();
  EXPECT_EQ(changed.report.state, State::kCold);
  EXPECT_EQ(changed.report.reason, "model changed");
  EXPECT_NE(changed.output, first.output);
  const Start changedWarm = start(after);
  EXPECT_EQ(changedWarm.report.state, State::kWarm) << changedWarm.report.reason;
  EXPECT_EQ(changedWarm.output, changed.output);
  // Both plans are kept.
  save(before);
  const Start back = start(before);
  EXPECT_EQ(back.report.state, State::kWarm) << back.report.reason;
  EXPECT_EQ(back.output, first.output);
}

TEST_F(WeightSessionTest, ACopyOfTheModelStartsWarm) {
  const TestModel test(1);
  save(test);
  const Start first = start(test);
  settle();
  save(test, "copy.bin");
  const Start copy = start(test, options(), "copy.bin");
  EXPECT_EQ(copy.report.state, State::kWarm) << copy.report.reason;
  EXPECT_EQ(copy.output, first.output);
}

TEST_F(WeightSessionTest, SignaturesShareTheirLargeSegments) {
  const TestModel one(1);
  const TestModel three(1, 3);
  ASSERT_EQ(one.file, three.file);
  save(one);
  const Start first = start(one);
  const Start second = start(three);
  // In one process they share packed weights even before these are written.
  EXPECT_EQ(second.report.state, State::kCold);
  EXPECT_FALSE(second.report.packedBytes.contains("CONV_2D"));
  EXPECT_FALSE(second.report.packedBytes.contains("FULLY_CONNECTED"));
  const std::vector<float> firstPicture(second.output.begin(), second.output.begin() + kClasses);
  EXPECT_EQ(firstPicture.size(), first.output.size());
  settle();
  // Convolution and matrix, which are shared, and the small packings of both.
  EXPECT_EQ(segmentFiles().size(), 4u);
  EXPECT_EQ(start(one).report.state, State::kWarm);
  EXPECT_EQ(start(three).report.state, State::kWarm);
}

// The signatures of a language model start one after the other; one file holds all of them.
TEST_F(WeightSessionTest, ABundleHoldsEverySignature) {
  const TestModel one(1);
  const TestModel three(1, 3);
  save(one);
  cache::StoreOptions bundle;
  bundle.bundle = (folder_.path() / "bundle").string();
  bundle.fingerprint = storeFingerprint();
  const auto settleBundle = [&] {
    cache::openSegmentStore(bundle)->settle();
  };
  const Start cold = start(one, bundle);
  EXPECT_EQ(cold.report.state, State::kCold);
  EXPECT_EQ(cold.report.reason, "first start of this model");
  settleBundle();
  const Start other = start(three, bundle);
  EXPECT_EQ(other.report.state, State::kCold);
  EXPECT_EQ(other.report.reason, "first start of this signature");
  settleBundle();
  const size_t size = std::filesystem::file_size(bundle.bundle);
  for (int round = 0; round < 2; ++round) {
    const Start warm = start(one, bundle);
    EXPECT_EQ(warm.report.state, State::kWarm) << warm.report.reason;
    EXPECT_EQ(warm.output, cold.output);
    const Start warmToo = start(three, bundle);
    EXPECT_EQ(warmToo.report.state, State::kWarm) << warmToo.report.reason;
    EXPECT_EQ(warmToo.output, other.output);
    settleBundle();
    EXPECT_EQ(std::filesystem::file_size(bundle.bundle), size);
  }
  // Large weights are stored once: without sharing the file would be twice as large.
  struct stat status;
  ASSERT_EQ(::stat(bundle.bundle.c_str(), &status), 0);
  EXPECT_LT(static_cast<size_t>(status.st_blocks) * 512, one.file.size() * 3 / 2);
  save(TestModel(2));
  EXPECT_EQ(start(TestModel(2), bundle).report.reason, "another model or build in the bundle");
}

TEST_F(WeightSessionTest, AModelOfWhichOneLayerChangedSharesTheOthers) {
  TestModel before(1);
  TestModel after(1);
  // The last constants are the matrix's bias: a small change in a small segment.
  after.file.back() ^= 1;
  save(before, "before.bin");
  save(after, "after.bin");
  start(before, options(), "before.bin");
  settle();
  EXPECT_EQ(segmentFiles().size(), 3u);
  start(after, options(), "after.bin");
  settle();
  // The matrix is packed with its bias; the convolution and the small packings are the same.
  EXPECT_EQ(segmentFiles().size(), 4u);
}

TEST_F(WeightSessionTest, AnEvictedSegmentIsPackedAgain) {
  const TestModel test(1);
  save(test);
  const std::vector<float> expected = packed(test);
  for (size_t i = 0; i < 3; ++i) {
    const auto files = segmentFiles();
    ASSERT_EQ(files.size(), 3u);
    const auto& file = files[i];
    waitUntilUnmapped();
    ASSERT_TRUE(std::filesystem::remove(file));
    {
      const Start partly = start(test);
      EXPECT_EQ(partly.report.state, State::kCold);
      EXPECT_EQ(partly.report.reason, "segment evicted");
      EXPECT_GT(partly.packed(), 0u);
      EXPECT_GT(partly.report.mappedBytes, 0u);
      EXPECT_EQ(partly.output, expected);
      settle();
    }
    EXPECT_EQ(segmentFiles().size(), 3u);
    EXPECT_EQ(start(test).report.state, State::kWarm);
  }
}

TEST_F(WeightSessionTest, AFlippedBitIsNeverUsedInStrictMode) {
  const TestModel test(1);
  save(test);
  const std::vector<float> expected = packed(test);
  ASSERT_EQ(segmentFiles().size(), 3u);
  for (const auto& file : segmentFiles()) {
    waitUntilUnmapped();
    auto bytes = cache::readFile(file);
    bytes[bytes.size() / 3] ^= 0x10;
    std::filesystem::permissions(file, std::filesystem::perms::owner_write,
                                 std::filesystem::perm_options::add);
    cache::writeFile(file, bytes);
    cache::StoreOptions strict = options();
    strict.mode = cache::StoreMode::kStrict;
    const Start repacked = start(test, strict);
    EXPECT_EQ(repacked.report.state, State::kCold);
    EXPECT_EQ(repacked.report.reason, "segment corrupt");
    EXPECT_EQ(repacked.output, expected);
    strict.fingerprint = storeFingerprint();
    cache::openSegmentStore(strict)->settle();
  }
}

// A forked child has the parent's mappings, but none of its threads and locks.
TEST_F(WeightSessionTest, AForkedChildComputesAndStartsOnItsOwn) {
  const TestModel test(1);
  save(test);
  for (const char* state : {"cold", "warm"}) {
    const Start parent = start(test);
    const int status = cache::inChild([&] {
      const bool same = runAgain(parent) == parent.output;
      // The child's own start over the same store: cold while the parent still writes, but correct.
      const Start own = start(test);
      return same && own.output == parent.output && !HasFailure() ? 0 : 1;
    });
    EXPECT_TRUE(cache::succeeded(status)) << state << ": " << status;
    EXPECT_EQ(runAgain(parent), parent.output);
    settle();
  }
  EXPECT_EQ(start(test).report.state, State::kWarm);
}

// In the default mode a wrong byte may be mapped before the background check finds it.
TEST_F(WeightSessionTest, AFlippedBitIsRepairedWhileTheModelRuns) {
  const TestModel test(1);
  save(test);
  const std::vector<float> expected = packed(test);
  for (size_t i = 0; i < 3; ++i) {
    waitUntilUnmapped();
    const auto files = segmentFiles();
    ASSERT_EQ(files.size(), 3u);
    {
      const base::Descriptor file(::open(files[i].c_str(), O_RDWR | O_CLOEXEC));
      ASSERT_TRUE(file.valid());
      // Changes the exponents of 64 numbers; one segment holds only the depthwise filter and bias.
      constexpr off_t kInside = 1024;
      uint8_t bytes[256];
      ASSERT_EQ(::pread(file.get(), bytes, sizeof bytes, kInside),
                static_cast<ssize_t>(sizeof bytes));
      for (uint8_t& byte : bytes) byte ^= 0x40;
      ASSERT_EQ(::pwrite(file.get(), bytes, sizeof bytes, kInside),
                static_cast<ssize_t>(sizeof bytes));
      // The clock of a file system is coarse: without this the file might look unchanged since its
      // check.
      const timespec times[2] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
      ::futimens(file.get(), times);
    }
    const Start first = start(test);
    EXPECT_EQ(first.report.state, State::kWarm);
    settle();
    settle();  // the repair is posted by the check
    const hal::StartReport report = first.prepared->startReport();
    EXPECT_GT(report.repairedBytes, 0u) << files[i];
    EXPECT_EQ(report.reason, "segment corrupt");
    EXPECT_EQ(runAgain(first), expected);
    const Start second = start(test);
    EXPECT_EQ(second.report.state, State::kWarm) << second.report.reason;
    EXPECT_EQ(second.output, expected);
  }
}

TEST_F(WeightSessionTest, WithoutPermissionToWriteTheReasonIsReported) {
  const TestModel test(1);
  save(test);
  cache::StoreOptions readOnly = options();
  readOnly.mode = cache::StoreMode::kReadOnly;
  const Start uncached = start(test, readOnly);
  EXPECT_EQ(uncached.report.state, State::kUncached);
  EXPECT_NE(uncached.report.reason, "");
  EXPECT_GT(uncached.packed(), 0u);
  {
    start(test);
    settle();
  }
  const Start warm = start(test, readOnly);
  EXPECT_EQ(warm.report.state, State::kWarm) << warm.report.reason;
  EXPECT_EQ(warm.output, uncached.output);
}

TEST_F(WeightSessionTest, SwitchedOffNothingIsWritten) {
  const TestModel test(1);
  save(test);
  const Start uncached = start(test, off());
  EXPECT_EQ(uncached.report.state, State::kUncached);
  EXPECT_THAT(uncached.report.reason, HasSubstr("off"));
  EXPECT_FALSE(std::filesystem::exists(root()));
  // Signatures share packed weights nevertheless.
  const TestModel three(1, 3);
  const Start second = start(three, off());
  EXPECT_FALSE(second.report.packedBytes.contains("CONV_2D"));
}

TEST_F(WeightSessionTest, ADamagedPlanIsReplaced) {
  const TestModel test(1);
  save(test);
  const std::vector<float> expected = packed(test);
  for (const auto& entry : std::filesystem::directory_iterator(root() / "plans")) {
    auto bytes = cache::readFile(entry.path());
    bytes[bytes.size() / 2] ^= 1;
    cache::writeFile(entry.path(), bytes);
  }
  {
    const Start cold = start(test);
    EXPECT_EQ(cold.report.state, State::kCold);
    EXPECT_EQ(cold.output, expected);
    settle();
  }
  EXPECT_EQ(start(test).report.state, State::kWarm);
}

// A store with correct checksums may have been written by another program.
TEST_F(WeightSessionTest, APlanWithAWrongSizeIsNotBelieved) {
  const TestModel test(1);
  save(test);
  const std::vector<float> expected = packed(test);
  const auto store = cache::WeightStore::open(options()).value();
  cache::PlanKey key{};
  size_t places = 0;
  const auto plan = [&] {
    const auto inventory = store->inventory();
    for (const auto& known : inventory->plans)
      if (!known.segments.empty()) key = known.key;
    const auto found = store->findPlan(key);
    EXPECT_TRUE(found) << found.error().message;
    return found.value();
  };
  places = PackingMap::parse(plan()->bytes(), plan()->segments().size())->entries.size();
  EXPECT_GE(places, 4u);
  for (size_t place = 0; place < places; ++place) {
    const cache::PlanRef right = plan();
    PackingMap stored = *PackingMap::parse(right->bytes(), right->segments().size());
    // Shortens the place to its first bytes; it was a whole segment.
    PackingMap::Entry& entry = stored.entries[place];
    const cache::SegmentRef whole = store->find(right->segments()[entry.segment]).segment;
    ASSERT_TRUE(whole);
    const size_t size = entry.size > 128 ? entry.size - 128 : entry.size / 2;
    const std::vector<uint8_t> cut(whole->data() + entry.offset,
                                   whole->data() + entry.offset + size);
    const cache::SegmentRef planted = store->publish(cache::contentSegmentKey(cut), cut).value();
    std::vector<cache::SegmentKey> keys(right->segments().begin(), right->segments().end());
    entry = {entry.graph, entry.place, entry.seed, static_cast<uint32_t>(keys.size()),
             0,           cut.size()};
    keys.push_back(planted->key());
    stored.segmentSizes.push_back(cut.size());
    const auto written = store->publishPlan(key, stored.encoded(), keys);
    ASSERT_TRUE(written) << written.error().message;
    {
      const Start wrong = start(test);
      EXPECT_EQ(wrong.report.state, State::kCold) << place;
      EXPECT_EQ(wrong.report.reason, "plan corrupt") << place;
      EXPECT_EQ(wrong.output, expected) << place;
      settle();
    }
    const Start mended = start(test);
    EXPECT_EQ(mended.report.state, State::kWarm) << place << ": " << mended.report.reason;
    EXPECT_EQ(mended.packed(), 0u) << place;
    EXPECT_EQ(mended.output, expected) << place;
  }
}

TEST_F(WeightSessionTest, ThreadsThatStartAtOnceBuildOnePlan) {
  const TestModel test(1);
  save(test);
  std::vector<Start> starts(8);
  std::vector<std::thread> threads;
  threads.reserve(starts.size());
  for (Start& result : starts) threads.emplace_back([&] { result = start(test); });
  for (std::thread& thread : threads) thread.join();
  settle();
  size_t cold = 0;
  for (const Start& result : starts) {
    EXPECT_EQ(result.output, starts[0].output);
    cold += result.report.state == State::kCold;
  }
  EXPECT_EQ(cold, 1u);
  EXPECT_EQ(segmentFiles().size(), 3u);
}

// The signatures of a language model do this.
TEST_F(WeightSessionTest, ThreadsThatPackAtOnceShareThePackings) {
  const TestModel one(1);
  const TestModel two(1, 2);
  save(one);
  const uint64_t packed = start(one, off()).packed();
  for (int round = 0; round < 5; ++round) {
    std::vector<Start> starts(4);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < starts.size(); ++i)
      threads.emplace_back([&, i] { starts[i] = start(i % 2 == 0 ? one : two, off()); });
    for (std::thread& thread : threads) thread.join();
    uint64_t sum = 0;
    for (const Start& result : starts) {
      ASSERT_NE(result.prepared, nullptr);
      sum += result.packed();
    }
    EXPECT_LT(sum, 2 * packed);
  }
}

TEST_F(WeightSessionTest, AChildForkedWhileAnotherThreadPacksCanPack) {
  HEARTH_SKIP_FORK_AMID_ALLOCATIONS();
  const TestModel test(1);
  save(test);
  const std::vector<float> expected = start(test, off()).output;
  std::atomic<bool> isOver = false;
  std::thread packer([&] {
    while (!isOver) start(test, off());
  });
  for (int i = 0; i < 4; ++i) {
    const int status = cache::inChild(
        [&] { return start(test, off()).output == expected && !HasFailure() ? 0 : 1; });
    EXPECT_TRUE(cache::succeeded(status)) << status;
  }
  isOver = true;
  packer.join();
}

#ifdef HEARTH_TEST_HOOKS
// A thread forks while another is at a crash point, with the locks that it holds there.
TEST_F(WeightSessionTest, AChildStartsThatWasForkedAtAnyCrashPoint) {
  HEARTH_SKIP_FORK_AMID_ALLOCATIONS();
  const TestModel test(1);
  save(test);
  const std::vector<float> expected = start(test, off()).output;
  const Start shared = start(test);
  cache::StoreOptions bundle = options();
  bundle.bundle = (folder_.path() / "packed").string();
  static std::atomic<int> passes;
  static std::set<std::string> names;
  static std::mutex mutex;
  passes = 0;
  names.clear();
  base::watchCrashPoints([](std::string_view name) {
    {
      const std::lock_guard lock(mutex);
      if (!names.emplace(name).second) return;
    }
    ++passes;
    ::usleep(2000);
  });
  constexpr int kForks = 10;
  constexpr uint32_t kMostStarts = 200;
  std::atomic<int> forks = 0;
  std::atomic<bool> isOver = false;
  std::thread starter([&] {
    // The number of forks during a start depends on how busy the machine is.
    for (uint32_t i = 0; i < 6 || (forks < kForks && i < kMostStarts); ++i) {
      // A new model each time, since weights that the process has packed are not packed again.
      const TestModel other(100 + i);
      save(other, "other.bin");
      start(other, options(), "other.bin");
      settle();
      start(other, bundle, "other.bin");
      cache::openSegmentStore(bundle)->settle();
      const std::lock_guard lock(mutex);
      names.clear();
    }
    isOver = true;
  });
  int seen = 0;
  while (!isOver) {
    if (passes == seen) {
      ::usleep(100);
      continue;
    }
    seen = passes;
    const int status = cache::inChild([&] {
      base::watchCrashPoints(nullptr);
      bool isRight = runAgain(shared) == expected;
      isRight &= start(test).output == expected;
      return isRight && !HasFailure() ? 0 : 1;
    });
    EXPECT_TRUE(cache::succeeded(status)) << status;
    ++forks;
  }
  starter.join();
  base::watchCrashPoints(nullptr);
  EXPECT_GE(forks, kForks);
}
#endif

TEST_F(WeightSessionTest, JustInTimeTheResultIsTheSameAndTheNextStartWarm) {
  const TestModel test(1);
  save(test);
  const std::vector<float> expected = start(test, off()).output;
  preparation_ = hal::Preparation::kJustInTime;
  {
    const Start cold = start(test);
    EXPECT_EQ(cold.output, expected);
    EXPECT_EQ(cold.report.state, State::kCold);
    EXPECT_GT(cold.packed() + cold.report.sharedBytes, uint64_t{4} << 20);
    settle();
    EXPECT_EQ(runAgain(cold), expected);
  }
  EXPECT_EQ(segmentFiles().size(), 3u);
  const Start warm = start(test);
  EXPECT_EQ(warm.report.state, State::kWarm) << warm.report.reason;
  EXPECT_EQ(warm.packed(), 0u);
  EXPECT_EQ(warm.output, expected);
}

TEST_F(WeightSessionTest, JustInTimeAModelThatNobodyRunsIsKeptOrLeft) {
  const TestModel test(1);
  save(test);
  preparation_ = hal::Preparation::kJustInTime;
  // The model is freed at any moment of its preparation.
  for (int i = 0; i < 20; ++i) ASSERT_NE(prepareOnly(test, options()).prepared, nullptr);
  settle();
  const Start after = start(test);
  EXPECT_EQ(after.report.reason.find("corrupt"), std::string::npos) << after.report.reason;
  settle();
  EXPECT_EQ(start(test).report.state, State::kWarm);
}

TEST_F(WeightSessionTest, JustInTimeAForkedChildBuildsTheMissingKernels) {
  HEARTH_SKIP_FORK_AMID_ALLOCATIONS();
  const TestModel test(1);
  save(test);
  preparation_ = hal::Preparation::kJustInTime;
  const std::vector<float> expected = start(test, off()).output;
  for (int i = 0; i < 10; ++i) {
    const Start parent = prepareOnly(test, off());
    ASSERT_NE(parent.prepared, nullptr);
    const int status =
        cache::inChild([&] { return runAgain(parent) == expected && !HasFailure() ? 0 : 1; });
    EXPECT_TRUE(cache::succeeded(status)) << status;
    EXPECT_EQ(runAgain(parent), expected);
  }
}

TEST_F(WeightSessionTest, JustInTimeSeveralThreadsRunAtOnce) {
  const TestModel test(1);
  save(test);
  preparation_ = hal::Preparation::kJustInTime;
  for (const bool isWarm : {false, true}) {
    const Start first = start(test);
    const Start shared = prepareOnly(test, options());
    ASSERT_NE(shared.prepared, nullptr);
    std::vector<std::vector<float>> outputs(4);
    std::vector<std::thread> threads;
    threads.reserve(outputs.size());
    for (auto& output : outputs) threads.emplace_back([&] { output = runAgain(shared); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& output : outputs) EXPECT_EQ(output, first.output) << isWarm;
    settle();
  }
}

}  // namespace
}  // namespace hearth::cpu
