// SPDX-License-Identifier: Apache-2.0
// hearth-cpu as a caching driver: its files, and what can happen to them.
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
#include <optional>
#include <random>
#include <thread>

#include "base/fault.h"
#include "base/log.h"
#include "cache/compilation/cache_files.h"
#include "cache/object/object_file.h"
#include "cache/open_store.h"
#include "cache/store/segment_store.h"
#include "cache/testing/store_test_util.h"
#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/microkernels/qs8_dwconv.h"
#include "drivers/cpu/platform/build_identity.h"
#include "drivers/cpu/testing/reference_comparison.h"
#include "drivers/cpu/weights/open_stores.h"
#include "hal/cts/model_builder.h"

namespace hearth::cpu {
namespace {

namespace fs = std::filesystem;

using graph::OperandType;
using graph::OperationType;
using State = hal::StartReport::State;
using Tuning = hal::TuningReport::State;

constexpr uint32_t kSide = 8;
constexpr uint32_t kChannels = 16;
constexpr size_t kElements = size_t{kSide} * kSide * kChannels;

// Constants in one memory of the client, as NNAPI's clients have them.
class Constants {
 public:
  explicit Constants(uint32_t seed)
      : pool_(memory::Pool::anonymous(uint64_t{4} << 20).value()), state_(seed) {}

  uint32_t add(hal::cts::ModelBuilder* builder, graph::Dimensions dimensions) {
    const uint64_t offset = used_;
    uint64_t count = 1;
    for (const uint32_t dimension : dimensions) count *= dimension;
    auto* values = reinterpret_cast<float*>(pool_->mutableData() + offset);
    for (uint64_t i = 0; i < count; ++i) {
      state_ = state_ * 1664525u + 1013904223u;
      values[i] = static_cast<float>(state_ >> 8) / (1u << 24) - 0.5f;
    }
    used_ = (offset + count * sizeof(float) + 63) / 64 * 64;
    return builder->reference(OperandType::kTensorFloat32, std::move(dimensions), pool_, offset);
  }
  // Overwrites the memory, as a client may once its model is freed.
  void wipe() const { std::memset(pool_->mutableData(), 0x7f, pool_->size()); }

 private:
  memory::PoolRef pool_;
  uint32_t state_;
  uint64_t used_ = 0;
};

// DEPTHWISE_CONV_2D, CONV_2D and ADD of a constant. Their constants are packed at each start, once,
// and never.
struct Sample {
  // Another `activation` gives another model cache, another seed another data cache.
  explicit Sample(uint32_t seed, uint32_t filters = kChannels, int32_t activation = 0)
      : constants(seed) {
    hal::cts::ModelBuilder builder;
    const auto type = OperandType::kTensorFloat32;
    const uint32_t in = builder.input(type, {1, kSide, kSide, kChannels});
    const uint32_t deep = builder.temporary(type, {1, kSide, kSide, kChannels});
    const uint32_t wide = builder.temporary(type, {1, kSide, kSide, filters});
    const uint32_t narrow = builder.temporary(type, {1, kSide, kSide, kChannels});
    const uint32_t out = builder.output(type, {1, kSide, kSide, kChannels});
    const uint32_t depthwise = constants.add(&builder, {1, 3, 3, kChannels});
    const uint32_t depthwiseBias = constants.add(&builder, {kChannels});
    const uint32_t filter = constants.add(&builder, {filters, 3, 3, kChannels});
    const uint32_t bias = constants.add(&builder, {filters});
    const uint32_t back = constants.add(&builder, {kChannels, 1, 1, filters});
    const uint32_t backBias = constants.add(&builder, {kChannels});
    const uint32_t more = constants.add(&builder, {1, kSide, kSide, kChannels});
    const uint32_t same = builder.scalar(1);
    const uint32_t one = builder.scalar(1);
    const uint32_t none = builder.scalar(0);
    builder.operation(OperationType::kDepthwiseConv2d,
                      {in, depthwise, depthwiseBias, same, one, one, one, none}, {deep});
    builder.operation(OperationType::kConv2d, {deep, filter, bias, same, one, one, none}, {wide});
    builder.operation(OperationType::kConv2d, {wide, back, backBias, same, one, one, none},
                      {narrow});
    builder.operation(OperationType::kAdd, {narrow, more, builder.scalar(activation)}, {out});
    model = std::make_shared<const graph::Model>(builder.model());
  }
  Constants constants;
  std::shared_ptr<const graph::Model> model;
};

// Runs a model with one input and one output.
template <typename T>
Status compute(hal::PreparedModel& prepared, std::vector<T> in, std::vector<T>* output) {
  hal::Request request;
  request.inputs.resize(1);
  request.inputs[0].kind = hal::Argument::Kind::kPointer;
  request.inputs[0].pointer = in.data();
  request.inputs[0].length = in.size() * sizeof(T);
  request.outputs.resize(1);
  request.outputs[0].kind = hal::Argument::Kind::kPointer;
  request.outputs[0].pointer = output->data();
  request.outputs[0].length = output->size() * sizeof(T);
  HEARTH_ASSIGN(const auto execution, prepared.createExecution(std::move(request)));
  return execution->compute(base::Deadline()).status;
}

Status compute(hal::PreparedModel& prepared, std::vector<float>* output) {
  std::vector<float> in(kElements);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 17) / 8 - 1;
  output->assign(kElements, -1);
  return compute(prepared, std::move(in), output);
}

std::vector<float> outputOf(hal::PreparedModel& prepared) {
  std::vector<float> output;
  const Status status = compute(prepared, &output);
  EXPECT_TRUE(status) << status.error().toString();
  return output;
}

class ModelCacheTest : public testing::Test {
 protected:
  ModelCacheTest() {
    base::setLogLevel(base::LogLevel::kOff);
    ::setenv("XDG_STATE_HOME", (root() / "state").c_str(), 1);
    options_.driverOptions = {{"store_mode", "off"}};
  }
  ~ModelCacheTest() override { ::unsetenv("XDG_STATE_HOME"); }

  const fs::path& root() const { return memory_.path(); }
  void useStore() {
    options_.driverOptions = {{"store", (root() / "store").string()},
                              {"store_bytes", std::to_string(uint64_t{1} << 40)}};
  }

  fs::path modelFile(const std::string& name = "a") const { return root() / (name + ".model"); }
  fs::path dataFile(const std::string& name = "a") const { return root() / (name + ".data"); }
  static base::Descriptor opened(const fs::path& path, int flags = O_RDWR | O_CREAT) {
    return base::Descriptor(::open(path.c_str(), flags | O_CLOEXEC, 0600));
  }
  hal::Cache files(const std::string& name = "a", uint8_t token = 1) const {
    hal::Cache cache;
    cache.modelFiles.push_back(opened(modelFile(name)));
    cache.dataFiles.push_back(opened(dataFile(name)));
    cache.token = {token};
    return cache;
  }

  Result<std::shared_ptr<hal::PreparedModel>> prepare(const Sample& sample, hal::Cache cache) {
    return device_->prepareModel(sample.model, options_, std::move(cache));
  }
  Result<std::shared_ptr<hal::PreparedModel>> restore(hal::Cache cache) {
    return device_->prepareModelFromCache(options_, std::move(cache));
  }
  std::vector<float> expected(const Sample& sample) { return outputOf(**prepare(sample, {})); }
  // Expects that the files are refused and that nothing in them is interpreted.
  void expectMiss(const std::string& what) {
    const uint64_t trusted = cache::trustedCacheBytes();
    EXPECT_FALSE(restore(files())) << what;
    EXPECT_EQ(cache::trustedCacheBytes(), trusted) << what;
  }
  void expectRepair(const Sample& sample, const std::vector<float>& right) {
    const auto prepared = prepare(sample, files());
    ASSERT_TRUE(prepared);
    EXPECT_EQ(outputOf(**prepared), right);
    const auto restored = restore(files());
    ASSERT_TRUE(restored) << restored.error().toString();
    EXPECT_EQ(outputOf(**restored), right);
  }

  cache::TempFolder memory_{cache::TempFolder::Place::kMemory};
  std::shared_ptr<hal::Device> device_ = createCpuDevice();
  hal::PrepareOptions options_;
};

// Both places of large bytes: the data cache and the store.
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

// A kernel of ours packs the filter of int8 depthwise layers once, where the CPU has the
// instructions; XNNPACK packs it at each start, from a copy.
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
  // If all results were clamped, the comparison would show little.
  EXPECT_GT(std::ranges::count_if(right, [](int8_t v) { return v > -128 && v < 127; }),
            static_cast<std::ptrdiff_t>(right.size() / 4));

  // All bytes of the files and the store, in which the filters are searched.
  std::vector<uint8_t> kept = cache::readFile(modelFile());
  const auto add = [&](const fs::path& path) {
    const std::vector<uint8_t> bytes = cache::readFile(path);
    kept.insert(kept.end(), bytes.begin(), bytes.end());
  };
  add(dataFile());
  if (GetParam())
    for (const auto& entry : fs::recursive_directory_iterator(root() / "store" / "segments"))
      if (entry.is_regular_file()) add(entry.path());
  const auto isKept = [&](uint64_t offset) {
    return !std::ranges::search(kept, std::span(pool->data() + offset, 64)).empty();
  };
  EXPECT_EQ(isKept(filters.begin()->second), !hasDepthwiseProduct(3, 3));
  EXPECT_EQ(isKept(filters.rbegin()->second), !hasDepthwiseProduct(7, 7));

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
    // A huge file is not even read.
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
  // The same under one token: parts of two contents do not make a third.
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
  const hal::Cache held = files();
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  ASSERT_EQ(::fcntl(held.modelFiles[0].get(), F_OFD_SETLK, &lock), 0);
  const auto prepared = prepare(sample, files());
  ASSERT_TRUE(prepared);
  EXPECT_EQ(outputOf(**prepared), right);
  EXPECT_THAT((*prepared)->startReport().cacheProblem, testing::HasSubstr("lock"));
  expectMiss("nothing was written");
  lock.l_type = F_UNLCK;
  ASSERT_EQ(::fcntl(held.modelFiles[0].get(), F_OFD_SETLK, &lock), 0);
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
  for (const auto& entry : fs::recursive_directory_iterator(root() / "store" / "segments"))
    if (entry.is_regular_file()) fs::remove(entry.path());
  EXPECT_FALSE(restore(files()));
  expectRepair(sample, right);
}

TEST_F(ModelCacheTest, TokensShareTheSegmentsOfAModel) {
  useStore();
  const Sample sample(12, 600);
  const auto right = expected(sample);
  const auto segments = [&] {
    size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root() / "store" / "segments"))
      count += entry.is_regular_file();
    return count;
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

// The end of prefetching is the only moment at which a start from a compilation cache begins the
// checks.
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
  cache::StoreOptions options = *cache::StoreOptions::fromTexts(options_.driverOptions);
  options.fingerprint = storeFingerprint();
  const auto store = cache::openSegmentStore(options);
  for (int i = 0; i < 3000 && store->counters().segmentsChecked == 0; ++i) ::usleep(10'000);
  EXPECT_GT(store->counters().segmentsChecked, 0u);
}

// The store's files are lost while a model uses them whose client has freed its constants.
class LostSegmentsTest : public ModelCacheTest {
 protected:
  LostSegmentsTest() {
    useStore();
    // Several threads may pack small weights in another order, which gives another segment.
    options_.threads = 1;
  }

  static std::vector<fs::path> segmentsIn(const fs::path& store) {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::recursive_directory_iterator(store / "segments"))
      if (entry.is_regular_file()) paths.push_back(entry.path());
    for (const fs::path& path : paths)
      fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
    return paths;
  }
  // Waits for the work of the store in the background.
  void settle() const {
    cache::StoreOptions options = *cache::StoreOptions::fromTexts(options_.driverOptions);
    options.fingerprint = storeFingerprint();
    const auto store = cache::openSegmentStore(options);
    store->settle();
    store->settle();
  }
  // The model gives errors instead of wrong numbers, and right numbers once the model has been
  // compiled again.
  void expectFailureUntilCompiledAgain(hal::PreparedModel& restored,
                                       const std::vector<float>& right) {
    std::vector<float> output;
    for (int i = 0; i < 3; ++i) {
      const Status status = compute(restored, &output);
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().code(), ErrorCode::kOpFailed);
      EXPECT_THAT(status.error().message(), testing::HasSubstr("compiled again"));
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
  ASSERT_TRUE(prepare(sample_, files()));
  settle();
  for (const fs::path& path : segmentsIn(root() / "store")) {
    auto bytes = cache::readFile(path);
    bytes[2000] ^= 0x40;
    cache::writeFile(path, bytes);
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(9));
  }
  const auto restored = restore(files());
  ASSERT_TRUE(restored) << restored.error().toString();
  settle();
  expectFailureUntilCompiledAgain(**restored, right);
}

#ifdef HEARTH_TEST_HOOKS

// The store drops files that it cannot sync; the mapped bytes are right.
TEST_F(LostSegmentsTest, ThoseThatCannotBeSyncedStayInUse) {
  const auto right = expected(sample_);
  ASSERT_TRUE(prepare(sample_, files()));
  const auto restored = restore(files());
  ASSERT_TRUE(restored) << restored.error().toString();
  ASSERT_TRUE(base::sys::injectText("fsync:EIO:1:*"));
  settle();
  base::sys::clearFaults();
  EXPECT_TRUE(segmentsIn(root() / "store").empty());
  EXPECT_EQ(outputOf(**restored), right);
  EXPECT_GT((*restored)->startReport().repairedBytes, 0u);
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
    hal::Request request;
    request.inputs.resize(1);
    request.inputs[0].kind = hal::Argument::Kind::kPointer;
    request.inputs[0].pointer = in.data();
    request.inputs[0].length = in.size() * sizeof(float);
    request.inputs[0].dimensions = {kCount};
    request.outputs.resize(1);
    request.outputs[0].kind = hal::Argument::Kind::kPointer;
    request.outputs[0].pointer = output->data();
    request.outputs[0].length = output->size() * sizeof(float);
    HEARTH_ASSIGN(const auto execution, prepared.createExecution(std::move(request)));
    return execution->compute(base::Deadline()).status;
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
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().code(), ErrorCode::kOpFailed);
      EXPECT_THAT(status.error().message(), testing::HasSubstr("compiled again"));
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
  for (const fs::path& path : segmentsIn(root() / "store")) {
    auto bytes = cache::readFile(path);
    bytes[2000] ^= 0x40;
    cache::writeFile(path, bytes);
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(9));
  }
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
  // The result; none when the execution fails.
  static std::optional<std::vector<int8_t>> resultOf(hal::PreparedModel& prepared) {
    std::vector<int8_t> output(kFilters, 99);
    const Status status = compute(prepared, std::vector<int8_t>(kDepth, 40), &output);
    if (status) return output;
    EXPECT_EQ(status.error().code(), ErrorCode::kOpFailed);
    EXPECT_THAT(status.error().message(), testing::HasSubstr("compiled again"));
    return std::nullopt;
  }
  std::vector<int8_t> compile() {
    const auto prepared = device_->prepareModel(model_, options_, files());
    EXPECT_TRUE(prepared) << prepared.error().toString();
    EXPECT_EQ((*prepared)->startReport().cacheProblem, "");
    settle();
    return resultOf(**prepared).value();
  }
  // The segment that holds only scales.
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
  // The model has copied the scales: it does not need the file any more.
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
  const fs::path path = scalesPath();
  auto bytes = cache::readFile(path);
  bytes[4001] ^= 0x10;
  cache::writeFile(path, bytes);
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(9));
  const auto restored = restore(files());
  ASSERT_TRUE(restored) << restored.error().toString();
  settle();
  EXPECT_FALSE(resultOf(**restored));
  EXPECT_EQ(compile(), right);
  const auto again = restore(files());
  ASSERT_TRUE(again) << again.error().toString();
  EXPECT_EQ(resultOf(**again), right);
  // The first model has copies of wrong scales.
  EXPECT_FALSE(resultOf(**restored));
}

TEST_F(CachedScalesTest, WrongOnesAreNeverUsedByAStrictStore) {
  compile();
  auto bytes = cache::readFile(scalesPath());
  bytes[4001] ^= 0x10;
  cache::writeFile(scalesPath(), bytes);
  options_.driverOptions["store_mode"] = "strict";
  EXPECT_FALSE(restore(files()));
}

TEST_F(ModelCacheTest, AnInterpretedModelSaysWhyNothingIsSaved) {
  hal::cts::ModelBuilder builder;
  const uint32_t in = builder.input(OperandType::kTensorFloat32, {0});
  builder.operation(OperationType::kRelu, {in}, {builder.output(OperandType::kTensorFloat32, {0})});
  const auto model = std::make_shared<const graph::Model>(builder.model());
  const hal::Cache held = files();
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  ASSERT_EQ(::fcntl(held.modelFiles[0].get(), F_OFD_SETLK, &lock), 0);
  auto prepared = device_->prepareModel(model, options_, files());
  ASSERT_TRUE(prepared) << prepared.error().toString();
  EXPECT_NE((*prepared)->startReport().reason, "");
  EXPECT_THAT((*prepared)->startReport().cacheProblem, testing::HasSubstr("lock"));
  lock.l_type = F_UNLCK;
  ASSERT_EQ(::fcntl(held.modelFiles[0].get(), F_OFD_SETLK, &lock), 0);
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

// Measured choices are written to the files, by a model that was compiled and by one that was
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
