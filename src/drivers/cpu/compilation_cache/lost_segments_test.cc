// SPDX-License-Identifier: Apache-2.0
// What happens to models from compilation caches when their segments in the store are lost or
// wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <random>
#include <span>
#include <string_view>

#include "base/crash_point.h"
#include "base/fault.h"
#include "base/fork_test_util.h"
#include "drivers/cpu/testing/model_cache_test_util.h"

namespace hearth::cpu {
namespace {

// Of the payload of each segment, whatever this CPU's kernels pack; the least has less than 1 KiB.
constexpr size_t kByteOfWeights = 500;

// The store's files are lost while a model uses them, whose client has freed its constants.
class LostSegmentsTest : public ModelCacheTest {
 protected:
  LostSegmentsTest() {
    useStore();
    // Several threads may pack small weights in another order, which gives another segment.
    options_.threads = 1;
  }

  // Waits for the work of the store in the background.
  void settle() const {
    const auto used = store();
    used->settle();
    used->settle();
  }
  // Damages the store's segments between the compilation and a start from the cache files, and
  // waits until the damage is found.
  auto restoreWithWrongBytes() {
    EXPECT_TRUE(prepare(sample_, files()));
    settle();
    for (const fs::path& path : segmentsIn(root() / "store"))
      changeByte(path, kByteOfWeights, 0x40);
    auto restored = restore(files());
    settle();
    return restored;
  }
  // Expects the error of a model whose weights are lost.
  static void expectNeedOfCompilation(const Status& status) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), ErrorCode::kOpFailed);
    EXPECT_THAT(status.error().message(), testing::HasSubstr("compiled again"));
  }
  // Expects errors instead of wrong numbers, and right numbers once the model has been compiled
  // again.
  void expectFailureUntilCompiledAgain(hal::PreparedModel& restored,
                                       const std::vector<float>& right) {
    std::vector<float> output;
    for (int i = 0; i < 3; ++i) {
      const Status status = compute(restored, &output);
      ASSERT_NO_FATAL_FAILURE(expectNeedOfCompilation(status));
    }
    ASSERT_TRUE(prepare(sample_, files("b", 2)));
    settle();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(outputOf(restored), right);
    EXPECT_EQ(restored.startReport().reason, "segment corrupt");
    EXPECT_GT(restored.startReport().repairedBytes, 0u);
  }

  // Its filters are packed; the constant of the addition is read in place.
  const Sample sample_{21, 600};
};

TEST_F(LostSegmentsTest, TruncatedOnesAreTakenFromTheStoreAgain) {
  const auto right = expected(sample_);
  ASSERT_TRUE(prepare(sample_, files()));
  const auto restored = restore(files());
  ASSERT_TRUE(restored) << restored.error().toString();
  EXPECT_EQ(outputOf(**restored), right);
  const auto paths = segmentsIn(root() / "store");
  ASSERT_GE(paths.size(), 2u);
  for (const fs::path& path : paths) fs::resize_file(path, 0);
  expectFailureUntilCompiledAgain(**restored, right);
}

TEST_F(LostSegmentsTest, EachOfThemIsNoticed) {
  const auto right = expected(sample_);
  ASSERT_TRUE(prepare(sample_, files()));
  settle();
  const size_t count = segmentsIn(root() / "store").size();
  for (size_t i = 0; i < count; ++i) {
    SCOPED_TRACE(i);
    const auto restored = restore(files());
    ASSERT_TRUE(restored) << restored.error().toString();
    const auto paths = segmentsIn(root() / "store");
    ASSERT_EQ(paths.size(), count);
    fs::resize_file(paths[i], 0);
    expectFailureUntilCompiledAgain(**restored, right);
  }
}

TEST_F(LostSegmentsTest, WrongBytesAreNotUsedOnceTheyAreFound) {
  const auto right = expected(sample_);
  const auto restored = restoreWithWrongBytes();
  ASSERT_TRUE(restored) << restored.error().toString();
  expectFailureUntilCompiledAgain(**restored, right);
}

// A forked child also takes them from the store, as its parent does, and packs nothing.
TEST_F(LostSegmentsTest, AForkedChildTakesThemFromTheStore) {
  HEARTH_SKIP_FORK_AMID_ALLOCATIONS();
  const auto right = expected(sample_);
  const auto restored = restoreWithWrongBytes();
  ASSERT_TRUE(restored) << restored.error().toString();
  ASSERT_TRUE(prepare(sample_, files("b", 2)));
  settle();
  EXPECT_TRUE(cache::succeeded(
      cache::inChild([&] { return outputOf(**restored) == right && !HasFailure() ? 0 : 1; })));
}

#ifdef HEARTH_TEST_HOOKS

// Keeps the threads of stores from syncing segments, which they do some seconds after writing them.
class HeldSyncs {
 public:
  HeldSyncs() {
    isHeld_ = true;
    base::watchCrashPoints([](std::string_view point) {
      if (point == "segment.before_sync") isHeld_.wait(true);
    });
  }
  ~HeldSyncs() { release(); }

  // Those that were held fail, and those that follow until the end of `work`.
  template <typename Work>
  void failDuring(Work work) {
    EXPECT_TRUE(base::sys::injectText("fsync:EIO:1:*"));
    release();
    work();
    base::sys::clearFaults();
  }

 private:
  static void release() {
    base::watchCrashPoints(nullptr);
    isHeld_ = false;
    isHeld_.notify_all();
  }
  inline static std::atomic<bool> isHeld_;
};

// The store drops files that it cannot sync; the mapped bytes stay right.
TEST_F(LostSegmentsTest, ThoseThatCannotBeSyncedStayInUse) {
  HeldSyncs syncs;
  const auto right = expected(sample_);
  ASSERT_TRUE(prepare(sample_, files()));
  const auto restored = restore(files());
  ASSERT_TRUE(restored) << restored.error().toString();
  syncs.failDuring([&] { settle(); });
  EXPECT_TRUE(segmentsIn(root() / "store").empty());
  EXPECT_EQ(outputOf(**restored), right);
  EXPECT_GT((*restored)->startReport().repairedBytes, 0u);
}

// A full or broken disk may say so only at a sync, and again whenever the model has packed the
// weights anew.
TEST_F(LostSegmentsTest, ThoseThatCanNeverBeSyncedAreNotPackedForEver) {
  HeldSyncs syncs;
  const auto compiled = prepare(sample_, files());
  ASSERT_TRUE(compiled) << compiled.error().toString();
  const auto right = outputOf(**compiled);
  uint64_t repaired = 0;
  int still = 0;  // rounds in a row without another repair
  syncs.failDuring([&] {
    for (int round = 0; round < 100 && still < 5; ++round) {
      settle();
      const uint64_t now = (*compiled)->startReport().repairedBytes;
      still = now != 0 && now == repaired ? still + 1 : 0;
      repaired = now;
    }
  });
  EXPECT_EQ(still, 5) << repaired << " bytes were repaired";
  EXPECT_EQ(outputOf(**compiled), right);
}

#endif

TEST_F(LostSegmentsTest, AnotherStoreMayHaveThem) {
  const auto right = expected(sample_);
  ASSERT_TRUE(prepare(sample_, files()));
  settle();
  fs::copy(root() / "store", root() / "system", fs::copy_options::recursive);
  options_.driverOptions["system_stores"] = (root() / "system").string();
  const auto restored = restore(files());
  ASSERT_TRUE(restored) << restored.error().toString();
  for (const fs::path& path : segmentsIn(root() / "system")) fs::resize_file(path, 0);
  EXPECT_EQ(outputOf(**restored), right);
  EXPECT_EQ((*restored)->startReport().reason, "segment corrupt");
  EXPECT_EQ(outputOf(**restored), right);
}

// Constants of an interpreted model are lost.
class LostConstantsTest : public LostSegmentsTest {
 protected:
  static constexpr uint32_t kCount = 30'000;  // enough for the store

  LostConstantsTest() {
    hal::cts::ModelBuilder builder;
    const auto type = OperandType::kTensorFloat32;
    const uint32_t in = builder.input(type, {0});
    const uint32_t constant = constants_.add(&builder, {kCount});
    builder.operation(OperationType::kAdd, {in, constant, builder.scalar(0)},
                      {builder.output(type, {0})});
    model_ = std::make_shared<const graph::Model>(builder.model());
  }
  void compile(const std::string& name, int token) {
    const auto prepared =
        device_->prepareModel(model_, options_, files(name, static_cast<uint8_t>(token)));
    ASSERT_TRUE(prepared) << prepared.error().toString();
    ASSERT_EQ((*prepared)->startReport().cacheProblem, "");
    settle();
  }
  static Status computeRow(hal::PreparedModel& prepared, std::vector<float>* output) {
    std::vector<float> in(kCount, 1);
    output->assign(kCount, -1);
    return compute(prepared, std::move(in), output, {kCount});
  }
  static std::vector<float> rowOf(hal::PreparedModel& prepared) {
    std::vector<float> output;
    const Status status = computeRow(prepared, &output);
    EXPECT_TRUE(status) << status.error().toString();
    return output;
  }
  void expectFailuresOnly(hal::PreparedModel& prepared) {
    std::vector<float> output;
    for (int i = 0; i < 3; ++i) {
      const Status status = computeRow(prepared, &output);
      ASSERT_NO_FATAL_FAILURE(expectNeedOfCompilation(status));
    }
  }

  Constants constants_{33};
  std::shared_ptr<const graph::Model> model_;
};

TEST_F(LostConstantsTest, TruncatedOnesAreAnErrorUntilTheModelIsCompiledAgain) {
  compile("a", 1);
  const auto restored = restore(files());
  ASSERT_TRUE(restored) << restored.error().toString();
  ASSERT_NE((*restored)->startReport().reason, "");
  const std::vector<float> right = rowOf(**restored);
  const auto paths = segmentsIn(root() / "store");
  ASSERT_EQ(paths.size(), 1u);
  fs::resize_file(paths[0], 0);
  expectFailuresOnly(**restored);
  compile("b", 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rowOf(**restored), right);
}

TEST_F(LostConstantsTest, WrongOnesAreNotUsedOnceTheyAreFound) {
  compile("a", 1);
  for (const fs::path& path : segmentsIn(root() / "store")) changeByte(path, kByteOfWeights, 0x40);
  const auto restored = restore(files());
  ASSERT_TRUE(restored) << restored.error().toString();
  settle();
  expectFailuresOnly(**restored);
}

// The scales of a layer with many channels.
class CachedScalesTest : public LostSegmentsTest {
 protected:
  static constexpr uint32_t kFilters = 6000;
  static constexpr uint32_t kDepth = 16;

  CachedScalesTest() {
    constexpr auto kBytes = OperandType::kTensorQuant8AsymmSigned;
    hal::cts::ModelBuilder builder;
    std::mt19937 random(5);
    for (uint8_t& byte : std::span(pool_->mutableData(), size_t{kFilters} * kDepth))
      byte = static_cast<uint8_t>(random() % 255 + 129);  // no -128
    const uint32_t in = builder.input(kBytes, {1, 1, 1, kDepth}, 0.5f, 3);
    const uint32_t filter = builder.reference(OperandType::kTensorQuant8SymmPerChannel,
                                              {kFilters, 1, 1, kDepth}, pool_, 0);
    const uint32_t bias = builder.reference(OperandType::kTensorInt32, {kFilters}, pool_,
                                            uint64_t{kFilters} * kDepth);
    const uint32_t one = builder.scalar(1);
    builder.operation(OperationType::kConv2d, {in, filter, bias, one, one, one, builder.scalar(0)},
                      {builder.output(kBytes, {1, 1, 1, kFilters}, 2.0f, 5)});
    graph::Model made = builder.model();
    std::vector<float> scales;
    for (uint32_t i = 0; i < kFilters; ++i) scales.push_back(0.01f + 0.00001f * (i % 100));
    made.main().operands[filter].perChannel = {0, scales};
    model_ = std::make_shared<const graph::Model>(std::move(made));
  }
  // The result; none if the execution fails.
  static std::optional<std::vector<int8_t>> resultOf(hal::PreparedModel& prepared) {
    std::vector<int8_t> output(kFilters, 99);
    const Status status = compute(prepared, std::vector<int8_t>(kDepth, 40), &output);
    if (status) return output;
    expectNeedOfCompilation(status);
    return std::nullopt;
  }
  std::vector<int8_t> compile() {
    const auto prepared = device_->prepareModel(model_, options_, files());
    EXPECT_TRUE(prepared) << prepared.error().toString();
    EXPECT_EQ((*prepared)->startReport().cacheProblem, "");
    settle();
    return resultOf(**prepared).value();
  }
  // The segment that contains only scales.
  fs::path scalesPath() const {
    for (const fs::path& path : segmentsIn(root() / "store"))
      if (fs::file_size(path) < (kFilters + 100) * sizeof(float)) return path;
    ADD_FAILURE() << "no segment of scales";
    return {};
  }

  memory::PoolRef pool_ = memory::Pool::anonymous(uint64_t{1} << 20).value();
  std::shared_ptr<const graph::Model> model_;
};

TEST_F(CachedScalesTest, LieInTheStore) {
  const std::vector<int8_t> right = compile();
  EXPECT_LT(fs::file_size(modelFile()), kFilters);
  const auto restored = restore(files());
  ASSERT_TRUE(restored) << restored.error().toString();
  EXPECT_EQ(resultOf(**restored), right);
  // The model has copied the scales, so it does not need the file any more.
  fs::resize_file(scalesPath(), 0);
  EXPECT_EQ(resultOf(**restored), right);
  fs::remove(scalesPath());
  EXPECT_EQ(resultOf(**restored), right);
  EXPECT_FALSE(restore(files()));
  EXPECT_EQ(compile(), right);
  EXPECT_TRUE(restore(files()));
}

TEST_F(CachedScalesTest, WrongOnesAreNotUsedOnceTheyAreFound) {
  const std::vector<int8_t> right = compile();
  changeByte(scalesPath(), 4001, 0x10);
  const auto restored = restore(files());
  ASSERT_TRUE(restored) << restored.error().toString();
  settle();
  EXPECT_FALSE(resultOf(**restored));
  EXPECT_EQ(compile(), right);
  const auto again = restore(files());
  ASSERT_TRUE(again) << again.error().toString();
  EXPECT_EQ(resultOf(**again), right);
  // The first model has copied wrong scales.
  EXPECT_FALSE(resultOf(**restored));
}

#ifdef HEARTH_TEST_HOOKS

// The store reports them as wrong, too. What was copied of them is right.
TEST_F(CachedScalesTest, ThoseThatCannotBeSyncedAreNotTakenForWrong) {
  HeldSyncs syncs;
  // The compiled model ends here: it would pack the segments again, and the store would write them.
  const auto right = [&] {
    const auto prepared = device_->prepareModel(model_, options_, files());
    EXPECT_TRUE(prepared) << prepared.error().toString();
    return resultOf(**prepared);
  }();
  const auto restored = restore(files());
  ASSERT_TRUE(restored) << restored.error().toString();
  syncs.failDuring([&] { settle(); });
  EXPECT_TRUE(segmentsIn(root() / "store").empty());
  ASSERT_TRUE(right);
  EXPECT_EQ(resultOf(**restored), right);
}

#endif

TEST_F(CachedScalesTest, WrongOnesAreNeverUsedByAStrictStore) {
  compile();
  auto bytes = cache::readFile(scalesPath());
  bytes[4001] ^= 0x10;
  cache::writeFile(scalesPath(), bytes);
  options_.driverOptions["store_mode"] = "strict";
  EXPECT_FALSE(restore(files()));
}

}  // namespace
}  // namespace hearth::cpu
