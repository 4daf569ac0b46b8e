// SPDX-License-Identifier: Apache-2.0
// hearth-cpu as a caching driver: its files, and what may happen to them.
#include "drivers/cpu/compilation_cache/model_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <random>
#include <thread>

#include "cache/object/object_file.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_dwconv.h"
#include "drivers/cpu/microkernels/x86/avx512/qs8_dwconv.h"
#include "drivers/cpu/testing/model_cache_test_util.h"
#include "drivers/cpu/testing/reference_comparison.h"

namespace hearth::cpu {
namespace {

// Runs with both places of large bytes: the data cache and the store.
class ModelCachePlaces : public ModelCacheTest, public testing::WithParamInterface<bool> {
 protected:
  ModelCachePlaces() {
    if (GetParam()) useStore();
  }
};
INSTANTIATE_TEST_SUITE_P(Store, ModelCachePlaces, testing::Bool(), [](const auto& info) {
  return info.param ? std::string("On") : std::string("Off");
});

TEST_F(ModelCacheTest, TheFilesFollowThePreparation) {
  useStore();
  const Sample sample(15, 600);
  const auto right = expected(sample);
  std::promise<void> go;
  openStore(options_)->afterPublishing([going = go.get_future().share()] { going.wait(); });
  auto prepared = prepare(sample, files());
  ASSERT_TRUE(prepared);
  EXPECT_EQ(outputOf(**prepared), right);
  EXPECT_EQ(fs::file_size(modelFile()), 0u);
  EXPECT_TRUE(cache::isLocked(files().modelFiles[0].get()));
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    go.set_value();
  });
  // The client frees the model, and may change its constants afterwards.
  prepared->reset();
  sample.constants.wipe();
  later.join();
  EXPECT_FALSE(cache::isLocked(files().modelFiles[0].get()));
  const auto restored = restore(files());
  ASSERT_TRUE(restored) << restored.error().toString();
  EXPECT_EQ(outputOf(**restored), right);
}

TEST_P(ModelCachePlaces, AHitNeedsNoConstantOfTheClient) {
  const Sample sample(1, 600);
  const auto right = expected(sample);
  const auto prepared = prepare(sample, files());
  ASSERT_TRUE(prepared);
  EXPECT_EQ((*prepared)->startReport().cacheProblem, "");
  sample.constants.wipe();
  const auto restored = restore(files());
  ASSERT_TRUE(restored) << restored.error().toString();
  EXPECT_EQ(outputOf(**restored), right);
  const hal::StartReport report = (*restored)->startReport();
  EXPECT_EQ(report.state, State::kWarm);
  EXPECT_TRUE(report.packedBytes.empty());
  EXPECT_EQ(report.mappedBytes != 0, GetParam());
  // With a store the data cache only names segments of the store.
  EXPECT_EQ(fs::file_size(dataFile()) < 4096, GetParam());
}

// If the CPU has the instructions, a kernel of ours packs the filter of int8 depthwise layers once;
// XNNPACK packs it at each start, from a copy.
TEST_P(ModelCachePlaces, DepthwiseFiltersOfBytesComeBackPacked) {
  constexpr uint32_t kWidth = 5;
  constexpr uint32_t kDepth = 4096;
  constexpr auto kBytes = OperandType::kTensorQuant8AsymmSigned;
  const memory::PoolRef pool = memory::Pool::anonymous(uint64_t{1} << 20).value();
  std::mt19937 random(3);
  for (uint8_t& byte : std::span(pool->mutableData(), pool->size()))
    byte = static_cast<uint8_t>(random() % 255 + 129);  // no -128
  uint64_t used = 0;
  hal::cts::ModelBuilder builder;
  const auto constant = [&](OperandType type, const graph::Dimensions& dimensions, size_t bytes) {
    const uint64_t offset = std::exchange(used, (used + bytes + 63) / 64 * 64);
    return std::pair(builder.reference(type, dimensions, pool, offset), offset);
  };
  std::map<uint32_t, uint64_t> filters;  // offset in the pool, by operand
  const auto layer = [&](uint32_t input, uint32_t output, uint32_t window) {
    const auto [filter, offset] = constant(OperandType::kTensorQuant8SymmPerChannel,
                                           {1, window, window, kDepth}, window * window * kDepth);
    const auto [bias, biasOffset] = constant(OperandType::kTensorInt32, {kDepth}, 4 * kDepth);
    auto* const values = reinterpret_cast<int32_t*>(pool->mutableData() + biasOffset);
    for (uint32_t i = 0; i < kDepth; ++i) values[i] = static_cast<int32_t>(random() % 4001) - 2000;
    const uint32_t one = builder.scalar(1);
    builder.operation(OperationType::kDepthwiseConv2d,
                      {input, filter, bias, one, one, one, one, builder.scalar(0)}, {output});
    filters[filter] = offset;
  };
  const uint32_t in = builder.input(kBytes, {1, kWidth, kWidth, kDepth}, 0.5f, 3);
  const uint32_t middle = builder.temporary(kBytes, {1, kWidth, kWidth, kDepth}, 2.0f, -7);
  const uint32_t out = builder.output(kBytes, {1, kWidth, kWidth, kDepth}, 16.0f, 5);
  layer(in, middle, 3);
  layer(middle, out, 7);
  graph::Model made = builder.model();
  for (const auto& [filter, offset] : filters) {
    std::vector<float> scales;
    for (uint32_t i = 0; i < kDepth; ++i) scales.push_back(0.01f + 0.00001f * (i % 100));
    made.main().operands[filter].perChannel = {3, scales};
  }
  const auto model = std::make_shared<const graph::Model>(std::move(made));
  const auto resultOf = [&](hal::PreparedModel& prepared) {
    std::vector<int8_t> input(size_t{kWidth} * kWidth * kDepth);
    for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<int8_t>(i * 7 + i / 251);
    std::vector<int8_t> output(input.size(), 99);
    const Status status = compute(prepared, std::move(input), &output);
    EXPECT_TRUE(status) << status.error().toString();
    return output;
  };
  const auto prepared = device_->prepareModel(model, options_, files());
  ASSERT_TRUE(prepared) << prepared.error().toString();
  EXPECT_EQ((*prepared)->startReport().cacheProblem, "");
  const std::vector<int8_t> right = resultOf(**prepared);
  // If all results were clamped, the comparison would prove little.
  EXPECT_GT(std::ranges::count_if(right, [](int8_t v) { return v > -128 && v < 127; }),
            static_cast<std::ptrdiff_t>(right.size() / 4));

  // All bytes of the files and the store, in which the test searches for the filters.
  std::vector<uint8_t> kept = cache::readFile(modelFile());
  const auto add = [&](const fs::path& path) {
    const std::vector<uint8_t> bytes = cache::readFile(path);
    kept.insert(kept.end(), bytes.begin(), bytes.end());
  };
  add(dataFile());
  if (GetParam()) {
    // Segments get their lasting names, so that none is renamed between listing and reading.
    store()->settle();
    for (const fs::path& path : segmentsIn(root() / "store")) add(path);
  }
  const auto isKept = [&](uint64_t offset) {
    return !std::ranges::search(kept, std::span(pool->data() + offset, 64)).empty();
  };
  EXPECT_EQ(isKept(filters.begin()->second), !hasDepthwiseProduct(3, 3) && !hasAvx2Dwconv(3, 3));
  EXPECT_EQ(isKept(filters.rbegin()->second), !hasDepthwisePlaces(7 * 7));

  std::memset(pool->mutableData(), 0x7f, pool->size());
  const auto restored = device_->prepareModelFromCache(options_, files());
  ASSERT_TRUE(restored) << restored.error().toString();
  EXPECT_EQ(resultOf(**restored), right);
  EXPECT_TRUE((*restored)->startReport().packedBytes.empty());
}

TEST_P(ModelCachePlaces, ConcurrentExecutionsOfAHit) {
  const Sample sample(2, 600);
  const auto right = expected(sample);
  ASSERT_TRUE(prepare(sample, files()));
  const auto restored = restore(files());
  ASSERT_TRUE(restored);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 10; ++round) EXPECT_EQ(outputOf(**restored), right);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_P(ModelCachePlaces, EveryChangedByteIsAMiss) {
  const Sample sample(3);
  const auto right = expected(sample);
  ASSERT_TRUE(prepare(sample, files()));
  std::mt19937 random(5);
  for (const fs::path& path : {modelFile(), dataFile()}) {
    const std::vector<uint8_t> good = cache::readFile(path);
    ASSERT_FALSE(good.empty());
    const base::Descriptor file = opened(path);
    for (int i = 0; i < 5000; ++i) {
      const auto at = static_cast<off_t>(random() % good.size());
      const auto wrong = static_cast<uint8_t>(good[static_cast<size_t>(at)] ^ (1 + random() % 255));
      ASSERT_EQ(::pwrite(file.get(), &wrong, 1, at), 1);
      expectMiss(path.extension().string() + " " + std::to_string(at));
      ASSERT_EQ(::pwrite(file.get(), &good[static_cast<size_t>(at)], 1, at), 1);
    }
  }
  const auto restored = restore(files());
  ASSERT_TRUE(restored);
  EXPECT_EQ(outputOf(**restored), right);
}

TEST_P(ModelCachePlaces, OtherSizesAreAMiss) {
  const Sample sample(4);
  const auto right = expected(sample);
  for (const fs::path& path : {modelFile(), dataFile()}) {
    ASSERT_TRUE(prepare(sample, files()));
    const std::vector<uint8_t> good = cache::readFile(path);
    std::vector<size_t> sizes = {0, 1, good.size() - 1, good.size() + 1, 2 * good.size()};
    for (size_t size = 4096; size < good.size(); size += 4096) sizes.push_back(size);
    for (const size_t size : sizes) {
      std::vector<uint8_t> bytes = good;
      bytes.resize(size);
      cache::writeFile(path, bytes);
      expectMiss(path.extension().string() + " of " + std::to_string(size));
    }
    // A huge file is not read at all.
    if (::truncate(path.c_str(), off_t{1} << 60) == 0) expectMiss("2^60 bytes");
    fs::remove(path);
    expectMiss("new file");
    expectRepair(sample, right);
  }
}

TEST_P(ModelCachePlaces, FilesOfOthersAreAMiss) {
  const Sample first(5);
  const Sample second(6, kChannels, 1);
  const auto right = expected(first);
  ASSERT_TRUE(prepare(first, files("a", 1)));
  ASSERT_TRUE(prepare(second, files("b", 2)));
  EXPECT_FALSE(restore(files("a", 2))) << "the token of another";
  EXPECT_FALSE(restore(files("b", 1)));
  // Restores from the model cache of one compilation and the data cache of another.
  const auto mixed = [&](const std::string& model, const std::string& data, uint8_t token) {
    hal::Cache cache = files(model, token);
    cache.dataFiles.clear();
    cache.dataFiles.push_back(opened(dataFile(data)));
    return restore(std::move(cache));
  };
  EXPECT_TRUE(mixed("a", "a", 1));
  EXPECT_FALSE(mixed("a", "b", 1));
  EXPECT_FALSE(mixed("b", "a", 1));
  EXPECT_FALSE(mixed("a", "b", 2));
  // The same under one token: parts of two contents must not be combined.
  ASSERT_TRUE(prepare(second, files("b", 1)));
  EXPECT_TRUE(restore(files("a", 1)));
  EXPECT_TRUE(restore(files("b", 1)));
  EXPECT_FALSE(mixed("a", "b", 1));
  EXPECT_FALSE(mixed("b", "a", 1));
  expectRepair(first, right);
}

TEST_P(ModelCachePlaces, FilesThatChangeMeanwhile) {
  const Sample sample(7);
  const auto right = expected(sample);
  ASSERT_TRUE(prepare(sample, files()));
  const std::vector<uint8_t> model = cache::readFile(modelFile());
  const std::vector<uint8_t> data = cache::readFile(dataFile());
  std::atomic<bool> isOver = false;
  std::thread attacker([&] {
    std::mt19937 random(1);
    const base::Descriptor modelAgain = opened(modelFile());
    const base::Descriptor dataAgain = opened(dataFile());
    while (!isOver) {
      const bool isModel = random() % 2 == 0;
      const std::vector<uint8_t>& good = isModel ? model : data;
      const int file = (isModel ? modelAgain : dataAgain).get();
      const auto at = static_cast<off_t>(random() % good.size());
      const uint8_t wrong = static_cast<uint8_t>(random());
      (void)!::pwrite(file, &wrong, 1, at);
      if (random() % 4 == 0) (void)!::ftruncate(file, at);
      (void)!::pwrite(file, good.data(), good.size(), 0);
    }
  });
  int hits = 0;
  for (int i = 0; i < 500; ++i) {
    const auto restored = restore(files());
    if (!restored) continue;
    ++hits;
    EXPECT_EQ(outputOf(**restored), right);
  }
  for (int i = 0; i < 20; ++i) {
    const auto prepared = prepare(sample, files());
    ASSERT_TRUE(prepared);
    EXPECT_EQ(outputOf(**prepared), right);
  }
  isOver = true;
  attacker.join();
  RecordProperty("hits", hits);
  expectRepair(sample, right);
}

TEST_P(ModelCachePlaces, ThingsThatAreNoFiles) {
  const Sample sample(8);
  const auto right = expected(sample);
  ASSERT_EQ(::mkfifo((root() / "fifo").c_str(), 0600), 0);
  fs::create_directory(root() / "folder");
  const std::function<base::Descriptor()> things[] = {
      [&] { return opened(root() / "fifo", O_RDWR | O_NONBLOCK); },
      [&] { return opened(root() / "folder", O_RDONLY | O_DIRECTORY); },
      [&] { return opened("/dev/zero", O_RDWR); },
      [&] { return base::Descriptor(); },
      [&] { return opened(modelFile("new"), O_RDONLY | O_CREAT); },
      [&] { return opened(modelFile("new"), O_WRONLY | O_CREAT); },
  };
  ASSERT_TRUE(prepare(sample, files()));
  for (const auto& thing : things) {
    for (const bool isModel : {true, false}) {
      const auto with = [&] {
        hal::Cache cache = files();
        (isModel ? cache.modelFiles : cache.dataFiles)[0] = thing();
        return cache;
      };
      EXPECT_FALSE(restore(with()));
      const auto prepared = prepare(sample, with());
      ASSERT_TRUE(prepared) << prepared.error().toString();
      EXPECT_EQ(outputOf(**prepared), right);
    }
  }
  hal::Cache none = files();
  none.dataFiles.clear();
  EXPECT_FALSE(restore(std::move(none)));
  expectRepair(sample, right);
}

TEST_P(ModelCachePlaces, ALockThatIsNeverReleased) {
  const Sample sample(9);
  const auto right = expected(sample);
  HeldLock lock(files());
  const auto prepared = prepare(sample, files());
  ASSERT_TRUE(prepared);
  EXPECT_EQ(outputOf(**prepared), right);
  EXPECT_THAT((*prepared)->startReport().cacheProblem, testing::HasSubstr("lock"));
  expectMiss("nothing was written");
  lock.release();
  expectRepair(sample, right);
}

TEST_P(ModelCachePlaces, WithoutTheMapNothingIsBelieved) {
  const Sample sample(10);
  const auto right = expected(sample);
  ASSERT_TRUE(prepare(sample, files()));
  fs::remove_all(root() / "state");
  expectMiss("the map is gone");
  // A folder in place of the map.
  fs::create_directories(root() / "state" / "hearth" / "cache-map.sqlite");
  const auto prepared = prepare(sample, files());
  ASSERT_TRUE(prepared);
  EXPECT_EQ(outputOf(**prepared), right);
  EXPECT_THAT((*prepared)->startReport().cacheProblem, testing::HasSubstr("cache map"));
  expectMiss("there is no map");
  fs::remove_all(root() / "state");
  expectRepair(sample, right);
}

TEST_F(ModelCacheTest, EvictedSegmentsAreAMiss) {
  useStore();
  const Sample sample(11, 600);
  const auto right = expected(sample);
  ASSERT_TRUE(prepare(sample, files()));
  ASSERT_TRUE(restore(files()));
  for (const fs::path& path : segmentsIn(root() / "store")) fs::remove(path);
  EXPECT_FALSE(restore(files()));
  expectRepair(sample, right);
}

TEST_F(ModelCacheTest, TokensShareTheSegmentsOfAModel) {
  useStore();
  const Sample sample(12, 600);
  const auto right = expected(sample);
  const auto segments = [&] {
    return segmentsIn(root() / "store").size();
  };
  ASSERT_TRUE(prepare(sample, files("a", 1)));
  const size_t before = segments();
  EXPECT_GT(before, 0u);
  ASSERT_TRUE(prepare(sample, files("b", 2)));
  EXPECT_EQ(segments(), before);
  for (const auto& [name, token] : {std::pair("a", 1), std::pair("b", 2)}) {
    const auto restored = restore(files(name, static_cast<uint8_t>(token)));
    ASSERT_TRUE(restored);
    EXPECT_EQ(outputOf(**restored), right);
  }
}

// A start from a compilation cache begins the checks only at the end of prefetching.
TEST_F(ModelCacheTest, SegmentsThatAreBroughtInAreChecked) {
  useStore();
  const Sample sample(20, 600);
  ASSERT_TRUE(prepare(sample, files()));
  // A store with the same segments, none of which counts as checked.
  const fs::path copy = root() / "copy";
  fs::copy(root() / "store", copy, fs::copy_options::recursive);
  fs::remove(copy / "identity.sqlite");
  options_.driverOptions["store"] = copy.string();
  const auto restored = restore(files());
  ASSERT_TRUE(restored) << restored.error().toString();
  const auto used = store();
  for (int i = 0; i < 3000 && used->counters().segmentsChecked == 0; ++i) ::usleep(10'000);
  EXPECT_GT(used->counters().segmentsChecked, 0u);
}

TEST_F(ModelCacheTest, AnInterpretedModelSaysWhyNothingIsSaved) {
  hal::cts::ModelBuilder builder;
  const uint32_t in = builder.input(OperandType::kTensorFloat32, {0});
  builder.operation(OperationType::kRelu, {in}, {builder.output(OperandType::kTensorFloat32, {0})});
  const auto model = std::make_shared<const graph::Model>(builder.model());
  HeldLock lock(files());
  auto prepared = device_->prepareModel(model, options_, files());
  ASSERT_TRUE(prepared) << prepared.error().toString();
  EXPECT_NE((*prepared)->startReport().reason, "");
  EXPECT_THAT((*prepared)->startReport().cacheProblem, testing::HasSubstr("lock"));
  lock.release();
  prepared = device_->prepareModel(model, options_, files());
  ASSERT_TRUE(prepared);
  EXPECT_EQ((*prepared)->startReport().cacheProblem, "");
  EXPECT_TRUE(restore(files()));
}

TEST_F(ModelCacheTest, AnOmittedInputIsAnErrorAndNoCrash) {
  const Sample sample(13);
  ASSERT_TRUE(prepare(sample, files()));
  const auto restored = restore(files());
  ASSERT_TRUE(restored);
  hal::Request request;
  request.inputs.resize(1);
  request.outputs.resize(1);
  EXPECT_FALSE((*restored)->createExecution(std::move(request)));
}

// Measured choices are written to the files by a model that was compiled and by one that was
// restored.
TEST_P(ModelCachePlaces, MeasuredKernelsComeBack) {
  const Sample sample(14, 600);
  const auto right = expected(sample);
  const auto tune = [&](hal::PreparedModel& prepared) {
    for (int i = 0; i < 3000; ++i) {
      if (prepared.startReport().tuning.state != Tuning::kMeasuring) return;
      const std::vector<float> output = outputOf(prepared);
      for (size_t k = 0; k < right.size(); ++k) ASSERT_NEAR(output[k], right[k], 1e-4f);
    }
    ADD_FAILURE() << "measures without end";
  };
  // The files are written in the background.
  const auto expectRecalled = [&](const std::string& name) {
    for (int i = 0; i < 2000; ++i) {
      const auto restored = restore(files(name));
      if (restored && (*restored)->startReport().tuning.state == Tuning::kRecalled) {
        const std::vector<float> output = outputOf(**restored);
        for (size_t k = 0; k < right.size(); ++k) EXPECT_NEAR(output[k], right[k], 1e-4f);
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << "not recalled";
  };
  ASSERT_TRUE(prepare(sample, files("plain")));
  options_.isTuned = true;
  {
    const auto prepared = prepare(sample, files());
    ASSERT_TRUE(prepared);
    tune(**prepared);
    expectRecalled("a");
  }
  // A model from files without choices, and without the client's constants.
  sample.constants.wipe();
  const auto restored = restore(files("plain"));
  ASSERT_TRUE(restored) << restored.error().toString();
  EXPECT_EQ((*restored)->startReport().tuning.state, Tuning::kMeasuring);
  tune(**restored);
  expectRecalled("plain");
}

TEST_F(ModelCacheTest, SampleModelsComeBack) {
  size_t count = 0;
  for (const hal::cts::NamedModel& sample : hal::cts::sampleModels()) {
    const auto model = std::make_shared<const graph::Model>(sample.model);
    const std::string name = "sample" + std::to_string(count++);
    const auto prepared = device_->prepareModel(model, options_, files(name));
    ASSERT_TRUE(prepared) << sample.name << ": " << prepared.error().toString();
    const auto restored = restore(files(name));
    ASSERT_TRUE(restored) << sample.name << ": " << restored.error().toString();
    // Valid numbers of any type, not all equal and none of them NaN.
    std::vector<Bytes> inputs;
    for (const uint32_t input : model->main().inputs) {
      Bytes bytes(graph::byteSize(model->main().operands[input]).value());
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(0x3C + i % 13 % 5);
      inputs.push_back(std::move(bytes));
    }
    const auto right = runPrepared(*model, *prepared, inputs);
    ASSERT_TRUE(right) << sample.name << ": " << right.error().toString();
    const auto made = runPrepared(*model, *restored, inputs);
    ASSERT_TRUE(made) << sample.name << ": " << made.error().toString();
    EXPECT_EQ(*made, *right) << sample.name;
  }
  EXPECT_GT(count, 5u);
}

}  // namespace
}  // namespace hearth::cpu
