// SPDX-License-Identifier: Apache-2.0
// Starts from a store that is damaged, was written on a full disk, or belongs to another user. Each
// start is in a process of its own, must give right results, and must report what happened.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/fault.h"
#include "base/fork_test_util.h"
#include "base/format.h"
#include "cache/open_store.h"
#include "cache/store/segment_store.h"
#include "cache/testing/shared_with_children.h"
#include "drivers/cpu/testing/held_page.h"
#include "drivers/cpu/testing/weight_session_test_util.h"
#include "drivers/cpu/weights/segment_prefetcher.h"

namespace hearth::cpu {
namespace {

namespace fs = std::filesystem;

class DamagedStartTest : public WeightSessionTest {
 protected:
  // The observations of one process, in memory that it shares with the test.
  struct Seen {
    State explained;
    State state;
    char explainedReason[256];
    char reason[256];
    uint64_t packed;
    bool isRight;      // the first result
    bool isRightThen;  // the result when all background work is done
  };

  void SetUp() override {
    WeightSessionTest::SetUp();
    save(model_);
    expected_ = start(model_, off()).output;
  }

  cache::StoreOptions bundle() const {
    cache::StoreOptions result;
    result.bundle = (folder_.path() / "bundle").string();
    return result;
  }

  // Forks a process that explains its start, starts, runs, waits for the background work, and runs
  // again.
  Seen process(const cache::StoreOptions& store, const std::string& faults = "", uid_t user = 0) {
    *shared_ = {};
    const int status = cache::inChild([&] {
      if (user != 0 && (::setgid(user) != 0 || ::setuid(user) != 0)) return 2;
      const hal::StartReport explained = explain(store);
      shared_->explained = explained.state;
      explained.reason.copy(shared_->explainedReason, sizeof shared_->explainedReason - 1);
      if (!faults.empty() && !base::sys::injectText(faults)) return 3;
      {
        const Start own = start(model_, store);
        settleStore(store);
        settleStore(store);  // a repair is posted by the check
        shared_->isRight = own.output == expected_;
        shared_->isRightThen = runAgain(own) == expected_;
        const hal::StartReport report = own.prepared->startReport();
        shared_->state = report.state;
        report.reason.copy(shared_->reason, sizeof shared_->reason - 1);
        shared_->packed = own.packed();
      }
      return HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(status, 0);
    return *shared_;
  }

  static void settleStore(cache::StoreOptions store) {
    store.fingerprint = storeFingerprint();
    cache::openSegmentStore(store)->settle();
  }

  // 0 once the model gives right results.
  int runUntilRight(const Start& own) {
    while (runAgain(own) != expected_) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return 0;
  }

  hal::StartReport explain(const cache::StoreOptions& store) {
    auto pool = memory::Pool::openFile(folder_.path() / "model.bin");
    EXPECT_TRUE(pool);
    auto model = std::make_shared<graph::Model>(model_.model);
    model->pools = {*pool};
    hal::PrepareOptions prepare;
    prepare.threads = 2;
    prepare.driverOptions = store.toTexts();
    auto report = device_->explainStart(model, prepare);
    EXPECT_TRUE(report);
    return report.value_or(hal::StartReport{});
  }

  void forget() {
    cache::removeFolder(root());
    fs::remove(bundle().bundle);
    fs::remove(bundle().bundle + ".building");
  }

  // Puts wrong bytes into all packed weights of the store.
  void damage(const cache::StoreOptions& store) const {
    const auto files = store.bundle.empty() ? segmentFiles() : std::vector{fs::path(store.bundle)};
    for (const fs::path& file : files) {
      std::vector<uint8_t> bytes = cache::readFile(file);
      // The middle of a bundle lies behind its head.
      for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 256; ++i) bytes[i] ^= 0x40;
      fs::permissions(file, fs::perms(0600));
      cache::writeFile(file, bytes);
      if (store.bundle.empty()) fs::permissions(file, fs::perms(0400));
    }
  }

  // Creates a store that is damaged from the beginning.
  void makeDamaged(const cache::StoreOptions& store) {
    forget();
    ASSERT_TRUE(process(store).isRightThen);
    damage(store);
  }

  // Expects a start that may not use the store to give this reason and right results, and to change
  // no file.
  void expectRefusal(const std::string& reason, uid_t user) {
    const auto before = listing();
    const Seen refused = process(options(), "", user);
    EXPECT_EQ(refused.state, State::kUncached);
    EXPECT_EQ(std::string(refused.reason).substr(0, reason.size()), reason) << refused.reason;
    EXPECT_TRUE(refused.isRight && refused.isRightThen);
    EXPECT_EQ(listing(), before);
  }

  // Names and sizes of all files.
  std::set<std::string> listing() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
      names.insert(entry.path().string() + ' ' +
                   std::to_string(entry.is_regular_file() ? entry.file_size() : 0));
    return names;
  }

  uint64_t bytesOnDisk() const {
    uint64_t bytes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path()))
      if (entry.is_regular_file()) bytes += entry.file_size();
    return bytes;
  }

  const TestModel model_{1};
  std::vector<float> expected_;
  cache::SharedWithChildren<Seen> shared_;
};

// A lost plan makes the next start cold. It packs right weights, but segments of the same names are
// in the store; these have not been checked, and one of them is wrong.
TEST_F(DamagedStartTest, AColdStartDoesNotTakeWrongSegmentsForWhatItPacked) {
  for (const auto preparation : {hal::Preparation::kWhole, hal::Preparation::kJustInTime}) {
    preparation_ = preparation;
    forget();
    ASSERT_TRUE(process(options()).isRightThen);
    for (const auto& segment : segmentFiles()) {
      for (const auto& plan : fs::directory_iterator(root() / "plans")) fs::remove(plan.path());
      std::vector<uint8_t> bytes = cache::readFile(segment);
      for (size_t i = 1024; i < 1280; ++i) bytes[i] ^= 0x40;
      cache::writeFile(segment, bytes);
      fs::permissions(segment, fs::perms(0400));
      const Seen cold = process(options());
      EXPECT_EQ(cold.state, State::kCold);
      EXPECT_TRUE(cold.isRight) << segment;
      EXPECT_TRUE(cold.isRightThen) << segment;
      const Seen warm = process(options());
      EXPECT_EQ(warm.state, State::kWarm) << warm.reason;
      EXPECT_TRUE(warm.isRight) << segment;
      EXPECT_EQ(warm.packed, 0u);
    }
  }
}

// A child that uses its parent's model lacks the parent's threads, which would have found wrong
// weights or were about to repair them.
TEST_F(DamagedStartTest, AForkedChildFindsWhatItsParentHadNotChecked) {
  HEARTH_SKIP_FORK_AMID_ALLOCATIONS();
  for (const cache::StoreOptions& store : {options(), bundle()}) {
    for (const bool isFound : {false, true}) {
      ASSERT_NO_FATAL_FAILURE(makeDamaged(store));
      const auto parent = [&] {
        const Start own = start(model_, store);
        if (own.output == expected_) return 3;  // nothing is damaged
        if (isFound) settleStore(store);
        return cache::succeeded(cache::inChild([&] { return runUntilRight(own); })) ? 0 : 1;
      };
      EXPECT_EQ(cache::inChild(parent, 240), 0) << store.bundle << ", found: " << isFound;
    }
  }
}

// The parent's repair waits for a thread; meanwhile the store has right bytes again.
TEST_F(DamagedStartTest, AForkedChildRepairsWhatItsParentWasAboutToRepair) {
  HEARTH_SKIP_FORK_AMID_ALLOCATIONS();
  ASSERT_NO_FATAL_FAILURE(makeDamaged(options()));
  const std::vector<fs::path> files = segmentFiles();
  const auto parent = [&] {
    const Start own = start(model_, options());
    if (own.output == expected_) return 3;  // nothing is damaged
    cache::StoreOptions same = options();
    same.fingerprint = storeFingerprint();
    const auto store = cache::openSegmentStore(same);
    store->afterPublishing([] { ::pause(); });
    std::atomic<size_t> found = 0;
    const auto handler = store->addCorruptionHandler([&](const cache::SegmentKey&) { ++found; });
    store->checkFound();
    while (found < files.size()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto another = [&] {
      const bool isRight = start(model_, options()).output == expected_;
      settleStore(options());
      return isRight ? 0 : 1;
    };
    if (!cache::succeeded(cache::inChild(another))) return 4;
    for (const fs::path& file : files) {
      const auto key =
          cache::SegmentKey::fromHex(file.parent_path().filename().string() + file.stem().string());
      if (!key || !store->find(*key)) return 5;
    }
    return cache::succeeded(cache::inChild([&] { return runUntilRight(own); })) ? 0 : 1;
  };
  EXPECT_EQ(cache::inChild(parent, 240), 0);
}

// The child also lacks the thread that was preparing the parent's model.
TEST_F(DamagedStartTest, AForkedChildFindsWhatItsParentHadNotPrepared) {
  HEARTH_SKIP_FORK_AMID_ALLOCATIONS();
  for (const cache::StoreOptions& store : {options(), bundle()}) {
    for (int round = 0; round < 3; ++round) {
      ASSERT_NO_FATAL_FAILURE(makeDamaged(store));
      const auto parent = [&] {
        const Start own = prepareOnly(model_, store);
        return cache::succeeded(cache::inChild([&] { return runUntilRight(own); })) ? 0 : 1;
      };
      EXPECT_EQ(cache::inChild(parent, 240), 0) << store.bundle;
    }
  }
}

// Starts of the parent that are in progress at the fork never end in the child. They must not
// prevent the child's own models from being prefetched and checked.
TEST_F(DamagedStartTest, AForkedChildDoesNotWaitForStartsOfItsParent) {
  HEARTH_SKIP_FORK_AMID_ALLOCATIONS();
  for (const cache::StoreOptions& store : {options(), bundle()}) {
    ASSERT_NO_FATAL_FAILURE(makeDamaged(store));
    const auto parent = [&] {
      const StartInProgress other;
      const auto child = [&] {
        return runUntilRight(start(model_, store));
      };
      return cache::succeeded(cache::inChild(child)) ? 0 : 1;
    };
    EXPECT_EQ(cache::inChild(parent, 240), 0) << store.bundle;
  }
}

// Repaired weights are in anonymous memory, to which limits on files do not apply.
TEST_F(DamagedStartTest, ALimitOfFilesDoesNotHinderARepair) {
  for (const cache::StoreOptions& store : {options(), bundle()}) {
    ASSERT_NO_FATAL_FAILURE(makeDamaged(store));
    const int status = cache::inChild([&] {
      const rlimit limit{64 << 10, 64 << 10};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      return runUntilRight(start(model_, store));
    });
    EXPECT_EQ(status, 0) << store.bundle;
  }
}

// The background check replaces wrong weights that an execution has read but not yet used for its
// results.
TEST_F(DamagedStartTest, AnExecutionThatReadWrongWeightsIsRepeatedAfterTheRepair) {
  constexpr int kTooLate = 5;
  for (const cache::StoreOptions& store : {options(), bundle()}) {
    int status = kTooLate;
    // The repairing check begins a second after the start, which may pass on a busy machine.
    for (int trial = 0; trial < 50 && status == kTooLate; ++trial) {
      ASSERT_NO_FATAL_FAILURE(makeDamaged(store));
      status = cache::inChild([&] {
        const auto begin = std::chrono::steady_clock::now();
        const Start own = start(model_, store);
        HeldPage page;
        std::vector<float> input = pictures(own.batch);
        const std::span<float> output = page.floats(kClasses);
        std::thread execution([&] { EXPECT_TRUE(tryOnce(*own.prepared, input, output)); });
        page.waitUntilReached();
        const bool isInTime = own.output != expected_ && std::chrono::steady_clock::now() - begin <
                                                             cache::SegmentStore::kCheckDelay;
        settleStore(store);
        settleStore(store);  // a repair is posted by the check
        page.release();
        execution.join();
        if (!isInTime) return kTooLate;
        return std::ranges::equal(output, expected_) && !HasFailure() ? 0 : 1;
      });
      if (WIFEXITED(status)) status = WEXITSTATUS(status);
    }
    EXPECT_EQ(status, 0) << store.bundle;
  }
}

#ifdef HEARTH_TEST_HOOKS

// Weights that are known to be wrong must not give results.
TEST_F(DamagedStartTest, AModelWhoseRepairFailsGivesAnErrorAndNoNumbers) {
  ASSERT_TRUE(process(options()).isRightThen);
  damage(options());
  const int status = cache::inChild([&] {
    const Start own = start(model_, options());
    if (!base::sys::injectText("mmap:ENOMEM:1:*")) return 2;
    settle();
    settle();  // a repair is posted by the check
    std::vector<float> input(kSide * kSide * kChannels);
    std::vector<float> output(kClasses);
    const auto failure = tryOnce(*own.prepared, input, output);
    if (failure || failure.error().code() != ErrorCode::kOpFailed) return 3;
    base::sys::clearFaults();
    return runAgain(own) == expected_ ? 0 : 4;
  });
  EXPECT_EQ(status, 0);
}

// Any one write fails because the disk is full, or all writes from it on. The next start that has
// room completes the plan and reports so, and the one after it finds everything.
TEST_F(DamagedStartTest, APlanThatAFullDiskCutShortIsCompletedByTheNextStart) {
  for (const bool isBundle : {false, true})
    for (const auto preparation : {hal::Preparation::kWhole, hal::Preparation::kJustInTime})
      for (const char* last : {"1", "*"}) {
        preparation_ = preparation;
        bool wasPartly = false;
        for (const int write :
             last[0] == '*' ? std::vector{2, 5} : std::vector{1, 2, 3, 4, 5, 6, 7, 8}) {
          SCOPED_TRACE(base::formatText("bundle {}, just in time {}, write {} and {}", isBundle,
                                        preparation == hal::Preparation::kJustInTime, write, last));
          forget();
          const cache::StoreOptions store = isBundle ? bundle() : options();
          EXPECT_TRUE(
              process(store, base::formatText("pwrite:ENOSPC:{}:{}", write, last)).isRightThen);
          const Seen next = process(store);
          EXPECT_TRUE(next.isRight && next.isRightThen);
          // The explanation predicted the start.
          EXPECT_EQ(next.explained == State::kWarm, next.packed == 0) << next.explainedReason;
          EXPECT_EQ(next.state == State::kWarm, next.packed == 0) << next.reason;
          EXPECT_EQ(next.explained, next.state);
          EXPECT_STREQ(next.explainedReason, next.reason);
          wasPartly |= std::string(next.reason) == "part of the plan is missing";
          const Seen third = process(store);
          EXPECT_EQ(third.explained, State::kWarm) << third.explainedReason;
          EXPECT_EQ(third.state, State::kWarm) << third.reason;
          EXPECT_EQ(third.packed, 0u);
          EXPECT_TRUE(third.isRight && third.isRightThen);
        }
        // At least one of the writes leaves only a part of the plan.
        EXPECT_TRUE(wasPartly || isBundle || last[0] == '*');
      }
}

// While the disk stays full, a start changes nothing in the store.
TEST_F(DamagedStartTest, OnADiskThatStaysFullNothingGrows) {
  for (const bool isBundle : {false, true}) {
    SCOPED_TRACE(isBundle);
    const cache::StoreOptions store = isBundle ? bundle() : options();
    // Finds how many writes have to fail so that only a part of the plan is written.
    bool isPartly = false;
    for (int writes = 1; writes <= 8 && !isPartly; ++writes) {
      forget();
      ASSERT_TRUE(process(store, base::formatText("pwrite:ENOSPC:2:{}", writes)).isRightThen);
      isPartly = explain(store).reason == "part of the plan is missing";
    }
    ASSERT_TRUE(isPartly);
    ASSERT_TRUE(process(store, "pwrite:ENOSPC:1:*").isRightThen);
    const uint64_t before = bytesOnDisk();
    for (int i = 0; i < 3; ++i) {
      const Seen full = process(store, "pwrite:ENOSPC:1:*");
      EXPECT_TRUE(full.isRight && full.isRightThen);
      EXPECT_EQ(full.explained, State::kCold) << full.explainedReason;
      EXPECT_EQ(full.state, State::kUncached) << full.reason;
      EXPECT_EQ(std::string(full.reason).substr(0, 8), "no-space") << full.reason;
      EXPECT_GT(full.packed, 0u);
      EXPECT_EQ(bytesOnDisk(), before);
    }
    const Seen room = process(store);
    EXPECT_EQ(room.state, State::kCold) << room.reason;
    EXPECT_EQ(process(store).packed, 0u);
  }
}

#endif  // HEARTH_TEST_HOOKS

// A store of another user is refused with a reason, and nothing is written there.
TEST_F(DamagedStartTest, AnotherUsersProgramRunsWithoutTheStore) {
  if (::geteuid() != 0) GTEST_SKIP() << "Only root may become another user.";
  constexpr uid_t kNobody = 65534;
  fs::permissions(folder_.path(), fs::perms(0755));
  fs::permissions(folder_.path() / "model.bin", fs::perms(0644));
  // A store of another user that all users may enter.
  fs::create_directory(root());
  ASSERT_EQ(::chown(root().c_str(), kNobody - 1, kNobody - 1), 0);
  fs::permissions(root(), fs::perms(0755));
  for (const uid_t user : {uid_t{0}, kNobody}) expectRefusal("not-owned", user);
  // A store that all users may write.
  fs::remove(root());
  fs::create_directory(root());
  fs::permissions(root(), fs::perms(0777));
  for (const uid_t user : {uid_t{0}, kNobody}) expectRefusal("not-private", user);
  // Other users read root's store if they are allowed to, but never write it.
  fs::remove(root());
  ASSERT_EQ(process(options()).state, State::kCold);
  expectRefusal("", kNobody);
  for (const auto& entry : fs::recursive_directory_iterator(root()))
    fs::permissions(entry.path(), fs::perms(entry.is_directory() ? 0755 : 0644));
  fs::permissions(root(), fs::perms(0755));
  const auto before = listing();
  const Seen reader = process(options(), "", kNobody);
  EXPECT_EQ(reader.state, State::kWarm) << reader.reason;
  EXPECT_EQ(reader.packed, 0u);
  EXPECT_TRUE(reader.isRight && reader.isRightThen);
  EXPECT_EQ(listing(), before);
}

}  // namespace
}  // namespace hearth::cpu
