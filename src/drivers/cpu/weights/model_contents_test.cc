// SPDX-License-Identifier: Apache-2.0
// Models whose bytes change between two starts, or between packing and hashing: no start may get
// weights that were packed from other bytes.
#include "drivers/cpu/weights/model_contents.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "cache/open_store.h"
#include "cache/testing/store_test_util.h"
#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/platform/host_facts.h"
#include "drivers/cpu/testing/layer_chain.h"
#include "drivers/cpu/testing/run_once.h"
#include "memory/constant_pool.h"

namespace hearth::cpu {
namespace {

using State = hal::StartReport::State;
using ::testing::Each;
using ::testing::FloatNear;
using ::testing::HasSubstr;

constexpr uint32_t kInputs = 256;
constexpr uint32_t kOutputs = 512;
constexpr size_t kWeightBytes = size_t{kInputs} * kOutputs * sizeof(float);
constexpr size_t kBytes = kWeightBytes + kOutputs * sizeof(float);

// The constants of a fully connected layer whose outputs for ones are `value`.
std::vector<uint8_t> constants(float value) {
  std::vector<float> numbers(kBytes / sizeof(float));
  std::fill(numbers.begin(), numbers.begin() + kWeightBytes / sizeof(float), value / kInputs);
  std::vector<uint8_t> bytes(kBytes);
  std::memcpy(bytes.data(), numbers.data(), kBytes);
  return bytes;
}

struct Kind {
  std::string name;
  cache::StoreMode mode = cache::StoreMode::kReadWrite;
  bool isBundle = false;
};

class ChangedModelTest : public cache::StoreTest, public testing::WithParamInterface<Kind> {
 protected:
  ChangedModelTest() { std::filesystem::create_directory(folder_.path() / "models"); }
  ~ChangedModelTest() override { cache::changeFileFacts({}); }

  std::filesystem::path path() const { return folder_.path() / "models" / "model.bin"; }
  void write(float value) const { cache::writeFile(path(), constants(value)); }
  memory::PoolRef file() const { return memory::Pool::openFile(path()).value(); }

  cache::StoreOptions storeOptions() const {
    cache::StoreOptions options = this->options();
    options.mode = GetParam().mode;
    if (GetParam().isBundle) options.bundle = folder_.path() / "model.bundle";
    return options;
  }
  // The store that the device uses.
  std::shared_ptr<cache::SegmentStore> store() const {
    cache::StoreOptions same = storeOptions();
    same.fingerprint = storeFingerprint();
    return cache::openSegmentStore(same);
  }

  std::shared_ptr<hal::PreparedModel> prepare(const memory::PoolRef& pool) {
    hal::PrepareOptions options;
    options.threads = 2;
    options.driverOptions = storeOptions().toTexts();
    options.preparation = preparation_;
    auto prepared =
        device_->prepareModel(layerChainOver(pool, {kInputs, kOutputs}), options, hal::Cache());
    EXPECT_TRUE(prepared) << prepared.error().toString();
    return prepared.value_or(nullptr);
  }
  static std::vector<float> run(hal::PreparedModel& prepared) {
    return runOnce(prepared, std::vector<float>(kInputs, 1.0f), kOutputs);
  }
  // A start as in a process of its own, with a model that computes `value`.
  hal::StartReport expectStart(const memory::PoolRef& pool, float value) {
    const auto prepared = prepare(pool);
    if (prepared == nullptr) return {};
    EXPECT_THAT(run(*prepared), Each(FloatNear(value, 1e-3f)));
    (void)prepared->startReport();  // waits for what is made just in time
    store()->settle();
    return prepared->startReport();
  }

  // Compiles and runs the model and frees everything while the store's thread is blocked, calls
  // `then`, and lets the thread continue.
  void compileAndThen(memory::PoolRef pool, float value, const std::function<void()>& then) {
    const auto held = store();
    std::promise<void> mayGoOn;
    held->afterPublishing([going = mayGoOn.get_future().share()] { going.wait(); });
    {
      const auto prepared = prepare(pool);
      ASSERT_NE(prepared, nullptr);
      EXPECT_THAT(run(*prepared), Each(FloatNear(value, 1e-3f)));
    }
    pool.reset();
    then();
    mayGoOn.set_value();
    held->settle();
  }

  // Sets the facts that the system reports about the model's file, for the rest of the test.
  void setFacts(std::function<void(cache::FileFacts& facts)> change) const {
    cache::changeFileFacts([path = path().string(), change](int fd, cache::FileFacts& facts) {
      char target[4096];
      const ssize_t length =
          ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target);
      if (length > 0 && std::string_view(target, static_cast<size_t>(length)) == path)
        change(facts);
    });
  }
  // A file on a disk, changed an hour earlier than it was.
  void setAged() const {
    setFacts([](cache::FileFacts& facts) {
      facts.system = 0xef53;  // ext4
      for (int64_t* time : {&facts.modified, &facts.changed, &facts.born})
        *time = (*time - 3600'000'000'000) | 1;
    });
  }
  // A file of an image that was built with a fixed time: the next image has the same values.
  void setOnImage(unsigned long system, uint8_t boot, uint64_t mounting) const {
    setFacts([=](cache::FileFacts& facts) {
      facts.system = system;
      facts.device = 0x700;
      facts.inode = 12;
      facts.modified = facts.changed = facts.born = 1'700'000'000'000'000'000;
      facts.boot = {boot};
      facts.mounting = mounting;
      facts.diskSequence = 1;
    });
  }

  void forgetPlans() const {
    std::error_code ignored;
    for (const auto& plan : std::filesystem::directory_iterator(root() / "plans", ignored))
      std::filesystem::remove(plan.path());
    std::filesystem::remove(folder_.path() / "model.bundle");
  }

  std::shared_ptr<hal::Device> device_ = createCpuDevice();
  hal::Preparation preparation_ = hal::Preparation::kWhole;
};

#ifdef HEARTH_TEST_HOOKS
// Issue: device, inode, size and all times of the new version were those of the old one.
TEST_P(ChangedModelTest, AnImageWithTheOldStampsIsNoticedAfterItsUpdate) {
  for (const unsigned long system : {0xef53ul, 0x73717368ul, 0xe0f5e1e2ul}) {
    std::filesystem::remove_all(root());
    std::filesystem::remove(folder_.path() / "model.bundle");
    setOnImage(system, 1, 10);
    write(1);
    expectStart(file(), 1);
    EXPECT_EQ(expectStart(file(), 1).state, State::kWarm);
    EXPECT_EQ(expectStart(file(), 1).hashedBytes, 0u) << "Once for each boot and mounting.";
    // Another image is mounted at the same place within one boot.
    setOnImage(system, 1, 11);
    write(2);
    expectStart(file(), 2);
    EXPECT_EQ(expectStart(file(), 2).hashedBytes, 0u);
    // An update with a restart, after which mounts are counted from the beginning.
    setOnImage(system, 2, 10);
    write(3);
    expectStart(file(), 3);
    // The mount is unknown: the digest is never recalled.
    setOnImage(system, 2, 0);
    expectStart(file(), 3);
    write(4);
    expectStart(file(), 4);
  }
}

TEST_P(ChangedModelTest, AServersWordIsTakenOnlyForWhatIsLongAgo) {
  const auto setServer = [&](int64_t age) {
    setFacts([=](cache::FileFacts& facts) {
      timespec now;
      ::clock_gettime(CLOCK_REALTIME, &now);
      static const int64_t start = int64_t{now.tv_sec} * 1'000'000'000;
      facts.system = 0x6969;  // NFS
      facts.device = 0x2d;
      facts.inode = 5;
      facts.modified = facts.changed = facts.born = start - age * 1'000'000'000 + 1;
    });
  };
  setServer(60);
  write(1);
  expectStart(file(), 1);
  // The attributes stay those of a minute ago.
  write(2);
  expectStart(file(), 2);
  setServer(3600);
  expectStart(file(), 2);
  EXPECT_EQ(expectStart(file(), 2).hashedBytes, 0u);
}

TEST_P(ChangedModelTest, OfAClockThatWentBackwardsNothingIsBelieved) {
  setFacts([](cache::FileFacts& facts) {
    facts.system = 0xef53;
    // The clock went back, so the change seems to lie a year in the future.
    facts.inode = 5;
    facts.modified = facts.changed = facts.born = 1'900'000'000'000'000'001;
  });
  write(1);
  expectStart(file(), 1);
  expectStart(file(), 1);
  write(2);
  expectStart(file(), 2);
}

// Issue: the digest of the new bytes was given to weights that were packed from the old ones.
TEST_P(ChangedModelTest, AFileThatIsRewrittenAfterTheCompilationPoisonsNoStore) {
  for (const auto preparation : {hal::Preparation::kWhole, hal::Preparation::kJustInTime}) {
    preparation_ = preparation;
    setAged();
    write(1);
    compileAndThen(file(), 1, [&] { write(2); });
    expectStart(file(), 2);
    write(1);
    expectStart(file(), 1);
    // The same, if the digest was known before.
    EXPECT_EQ(expectStart(file(), 1).state, State::kWarm);
    forgetPlans();
    compileAndThen(file(), 1, [&] { write(3); });
    expectStart(file(), 3);
  }
}

TEST_P(ChangedModelTest, AFileThatStaysTheSameIsKept) {
  setAged();
  write(1);
  compileAndThen(file(), 1, [] {});
  const hal::StartReport warm = expectStart(file(), 1);
  EXPECT_EQ(warm.state, State::kWarm) << warm.reason;
  EXPECT_EQ(warm.hashedBytes, 0u) << "It was hashed in the background of the first start.";
}

// Another start hashes the file before this one has confirmed that it is the same.
TEST_P(ChangedModelTest, AFileThatBecomesOldEnoughWhileItIsPackedIsKept) {
  write(9);
  expectStart(file(), 9);  // from now on a store has tags
  std::filesystem::remove(path());
  write(1);
  compileAndThen(file(), 1, [&] {
    setAged();
    const auto same = base::Descriptor::open(path(), O_RDONLY).value();
    EXPECT_TRUE(store()->contentHash(same.get(), 0, kBytes));
  });
  const hal::StartReport warm = expectStart(file(), 1);
  EXPECT_EQ(warm.state, State::kWarm) << warm.reason;
}

// Two mounts in one process; the first is still in use.
TEST_P(ChangedModelTest, PackingsAreNotSharedWithAnotherImagesModel) {
  setOnImage(0x73717368, 1, 10);
  write(1);
  const auto first = prepare(file());
  ASSERT_NE(first, nullptr);
  EXPECT_THAT(run(*first), Each(FloatNear(1, 1e-3f)));
  std::filesystem::remove(path());
  write(2);
  setOnImage(0x73717368, 1, 11);
  expectStart(file(), 2);
  // Weights of a file whose mount is unknown are not shared either.
  write(3);
  setOnImage(0x73717368, 1, 0);
  expectStart(file(), 3);
}
#endif

TEST_P(ChangedModelTest, AFileThatWasJustWrittenIsKeptIfItStaysTheSame) {
  write(2);
  compileAndThen(file(), 2, [&] { write(3); });
  expectStart(file(), 3);
  expectStart(file(), 3);
  write(1);
  compileAndThen(file(), 1, [] {});
  const hal::StartReport warm = expectStart(file(), 1);
  EXPECT_EQ(warm.state, State::kWarm) << warm.reason;
}

// Pools of NNAPI's clients, who may change the memory once the model is freed.
TEST_P(ChangedModelTest, MemoryThatIsRewrittenAfterTheCompilationPoisonsNoStore) {
  const auto rewritten = [](int fd, float value) {
    const std::vector<uint8_t> bytes = constants(value);
    ASSERT_EQ(::pwrite(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  };
  for (const auto preparation : {hal::Preparation::kWhole, hal::Preparation::kJustInTime}) {
    preparation_ = preparation;
    const base::Descriptor memory(::memfd_create("client", MFD_CLOEXEC));
    const base::Descriptor disk(::open(path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    for (const int fd : {memory.get(), disk.get()}) {
      const auto pool = [&] {
        return memory::Pool::ofFile(fd, 0, kBytes, memory::Mapping::Access::kReadOnly).value();
      };
      rewritten(fd, 1);
      compileAndThen(pool(), 1, [&] { rewritten(fd, 2); });
      expectStart(pool(), 2);
      // Packed weights of unchanged memory are kept.
      const hal::StartReport warm = expectStart(pool(), 2);
      EXPECT_EQ(warm.state, State::kWarm) << warm.reason;
      rewritten(fd, 3);
      expectStart(pool(), 3);
    }
    std::filesystem::remove_all(root());
    std::filesystem::remove(folder_.path() / "model.bundle");
  }
}

TEST_P(ChangedModelTest, SealedMemoryIsHashedOnceAndKept) {
  const std::vector<uint8_t> bytes = constants(1);
  const auto pool = [&] {
    return memory::constantPool(
               kBytes, [&](uint8_t* target) { std::memcpy(target, bytes.data(), bytes.size()); })
        .value();
  };
  const hal::StartReport cold = expectStart(pool(), 1);
  EXPECT_EQ(cold.hashedBytes, kBytes);
  EXPECT_EQ(expectStart(pool(), 1).state, State::kWarm);
}

// Files without a past: the store has seen their bytes, but not them.
TEST_P(ChangedModelTest, ACopyIsWarmAndAnotherVersionIsNot) {
  write(1);
  expectStart(file(), 1);
  for (const auto& [value, isSeen] :
       {std::pair(1.0f, true), {2.0f, false}, {1.0f, true}, {2.0f, true}}) {
    std::filesystem::remove(path());
    write(value);
    const hal::StartReport report = expectStart(file(), value);
    if (!GetParam().isBundle) {
      EXPECT_EQ(report.state, isSeen ? State::kWarm : State::kCold) << report.reason;
      EXPECT_EQ(report.reason, isSeen ? "" : "model changed");
      EXPECT_GE(report.hashedBytes, kBytes);
    }
  }
}

TEST_P(ChangedModelTest, WhatChangedIsReported) {
  if (GetParam().isBundle) GTEST_SKIP() << "The same words.";
  write(1);
  const auto held = store();
  std::promise<void> mayGoOn;
  held->afterPublishing([going = mayGoOn.get_future().share()] { going.wait(); });
  const auto prepared = prepare(file());
  write(2);
  mayGoOn.set_value();
  held->settle();
  EXPECT_EQ(prepared->startReport().state, State::kUncached);
  EXPECT_THAT(prepared->startReport().reason, HasSubstr("changed: "));
}

INSTANTIATE_TEST_SUITE_P(Stores, ChangedModelTest,
                         testing::Values(Kind{"Store"},
                                         Kind{"StrictStore", cache::StoreMode::kStrict},
                                         Kind{"Bundle", cache::StoreMode::kReadWrite, true},
                                         Kind{"StrictBundle", cache::StoreMode::kStrict, true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace hearth::cpu
