// SPDX-License-Identifier: Apache-2.0
// The fixture of the tests of hearth-cpu as a caching driver.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "cache/compilation/cache_files.h"
#include "cache/open_store.h"
#include "cache/store/segment_store.h"
#include "cache/testing/store_test_util.h"
#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/platform/build_identity.h"
#include "drivers/cpu/weights/open_stores.h"
#include "hal/cts/model_builder.h"

namespace hearth::cpu {

namespace fs = std::filesystem;

using graph::OperandType;
using graph::OperationType;
using State = hal::StartReport::State;
using Tuning = hal::TuningReport::State;

inline constexpr uint32_t kSide = 8;
inline constexpr uint32_t kChannels = 16;
inline constexpr size_t kElements = size_t{kSide} * kSide * kChannels;

// Constants in one memory of the client, as clients of NNAPI have them.
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

// DEPTHWISE_CONV_2D, CONV_2D and ADD of a constant: one whose weights are packed at each start, one
// whose weights are packed once, and one whose constant is never packed.
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

// Runs a model with one input and one output. `dimensions`: of the input, if the model leaves them
// open.
template <typename T>
Status compute(hal::PreparedModel& prepared, std::vector<T> in, std::vector<T>* output,
               graph::Dimensions dimensions = {}) {
  hal::Request request;
  request.inputs.resize(1);
  request.inputs[0].kind = hal::Argument::Kind::kPointer;
  request.inputs[0].pointer = in.data();
  request.inputs[0].length = in.size() * sizeof(T);
  request.inputs[0].dimensions = std::move(dimensions);
  request.outputs.resize(1);
  request.outputs[0].kind = hal::Argument::Kind::kPointer;
  request.outputs[0].pointer = output->data();
  request.outputs[0].length = output->size() * sizeof(T);
  HEARTH_ASSIGN(const auto execution, prepared.createExecution(std::move(request)));
  return execution->compute(base::Deadline()).status;
}

inline Status compute(hal::PreparedModel& prepared, std::vector<float>* output) {
  std::vector<float> in(kElements);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 17) / 8 - 1;
  output->assign(kElements, -1);
  return compute(prepared, std::move(in), output);
}

inline std::vector<float> outputOf(hal::PreparedModel& prepared) {
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

  // A write lock on a model cache, as another process may hold it.
  class HeldLock {
   public:
    explicit HeldLock(hal::Cache files) : files_(std::move(files)) { set(F_WRLCK); }
    void release() { set(F_UNLCK); }

   private:
    void set(short type) const {
      struct flock lock{};
      lock.l_type = type;
      lock.l_whence = SEEK_SET;
      EXPECT_EQ(::fcntl(files_.modelFiles[0].get(), F_OFD_SETLK, &lock), 0);
    }
    hal::Cache files_;
  };

  // The segments of a store, which the test may write.
  static std::vector<fs::path> segmentsIn(const fs::path& store) {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::recursive_directory_iterator(store / "segments"))
      if (entry.is_regular_file()) paths.push_back(entry.path());
    for (const fs::path& path : paths)
      fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
    return paths;
  }

  // Changes bits of a file and dates the file back, since the clock of a file system is coarse.
  static void changeByte(const fs::path& path, size_t at, uint8_t bits) {
    auto bytes = cache::readFile(path);
    bytes.at(at) ^= bits;
    cache::writeFile(path, bytes);
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(9));
  }

  // The store that the options name.
  std::shared_ptr<cache::SegmentStore> store() const {
    cache::StoreOptions options = *cache::StoreOptions::fromTexts(options_.driverOptions);
    options.fingerprint = storeFingerprint();
    return cache::openSegmentStore(options);
  }

  cache::TempFolder memory_{cache::TempFolder::Place::kMemory};
  std::shared_ptr<hal::Device> device_ = createCpuDevice();
  hal::PrepareOptions options_;
};

}  // namespace hearth::cpu
