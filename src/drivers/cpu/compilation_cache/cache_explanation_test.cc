// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/compilation_cache/cache_explanation.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "base/descriptor.h"
#include "cache/compilation/cache_files.h"
#include "cache/testing/store_test_util.h"
#include "drivers/cpu/cpu_device.h"
#include "hal/cts/model_builder.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;
using graph::OperationType;

constexpr OperandType kFloats = OperandType::kTensorFloat32;

// out = (in + constant) * in; `isReversed`: with the operands in another order.
graph::Model sample(float constant, int32_t activation, uint32_t size, bool isReversed) {
  hal::cts::ModelBuilder builder;
  const std::vector<float> values(size, constant);
  uint32_t in = 0;
  uint32_t out = 0;
  if (!isReversed) in = builder.input(kFloats, {size});
  const uint32_t more = builder.constant(kFloats, {size}, values);
  const uint32_t sum = builder.temporary(kFloats, {size});
  const uint32_t code = builder.scalar(activation);
  const uint32_t none = builder.scalar(0);
  out = builder.output(kFloats, {size});
  if (isReversed) in = builder.input(kFloats, {size});
  builder.operation(OperationType::kAdd, {in, more, code}, {sum});
  builder.operation(OperationType::kMul, {sum, in, none}, {out});
  return builder.model();
}

TEST(IsSameStructure, ComparesOperationsAndSmallConstants) {
  const graph::Model model = sample(1, 0, 4, false);
  EXPECT_TRUE(isSameStructure(model, sample(1, 0, 4, false)));
  EXPECT_TRUE(isSameStructure(model, sample(1, 0, 4, true)));
  EXPECT_FALSE(isSameStructure(model, sample(1, 1, 4, false)));
  EXPECT_FALSE(isSameStructure(model, sample(2, 0, 4, false)));
  EXPECT_FALSE(isSameStructure(model, sample(1, 0, 5, false)));
  graph::Model swapped = model;
  std::swap(swapped.subgraphs[0].operations[1].inputs[0],
            swapped.subgraphs[0].operations[1].inputs[1]);
  EXPECT_FALSE(isSameStructure(model, swapped));
  graph::Model doubled = model;
  doubled.subgraphs.push_back(doubled.subgraphs[0]);
  EXPECT_FALSE(isSameStructure(model, doubled));
  // Large constants do not matter.
  EXPECT_TRUE(isSameStructure(sample(1, 0, 100, false), sample(2, 0, 100, false)));
}

class CacheExplanationTest : public testing::Test {
 protected:
  CacheExplanationTest() : folder_(cache::TempFolder::Place::kMemory) {
    ::setenv("XDG_STATE_HOME", (folder_.path() / "state").c_str(), 1);
    options_.driverOptions = {{"store_mode", "off"}};
  }
  ~CacheExplanationTest() override { ::unsetenv("XDG_STATE_HOME"); }

  hal::Cache files() const {
    hal::Cache cache;
    cache.token = {1, 2, 3};
    const auto open = [&](const char* name) {
      return base::Descriptor(
          ::open((folder_.path() / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    };
    cache.modelFiles.push_back(open("model"));
    cache.dataFiles.push_back(open("data"));
    return cache;
  }
  hal::CacheVerdict explained(const graph::Model& model) const {
    return explainCache(model, options_, files());
  }

  cache::TempFolder folder_;
  hal::PrepareOptions options_;
};

TEST_F(CacheExplanationTest, SaysWhatPreparingFromTheFilesDoes) {
  const auto device = createCpuDevice();
  const auto model = std::make_shared<const graph::Model>(sample(1, 0, 100, false));
  EXPECT_EQ(explained(*model).code, "empty");
  ASSERT_TRUE(device->prepareModel(model, options_, files()));
  hal::CacheVerdict verdict = explained(*model);
  EXPECT_TRUE(verdict.isHit) << verdict.reason;
  EXPECT_EQ(verdict.isSameModel, true);
  EXPECT_TRUE(device->prepareModelFromCache(options_, files()));
  verdict = explained(sample(1, 1, 100, false));
  EXPECT_TRUE(verdict.isHit);
  EXPECT_EQ(verdict.isSameModel, false);

  const uint64_t trusted = cache::trustedCacheBytes();
  for (const char* name : {"data", "model"}) {
    const std::vector<uint8_t> right = cache::readFile(folder_.path() / name);
    ASSERT_FALSE(right.empty());
    for (size_t position = 0; position < right.size(); position += 97) {
      std::vector<uint8_t> bytes = right;
      bytes[position] ^= 1;
      cache::writeFile(folder_.path() / name, bytes);
      EXPECT_EQ(explained(*model).code, "wrong-bytes") << name << " " << position;
    }
    cache::writeFile(folder_.path() / name, right);
  }
  const std::vector<uint8_t> good = cache::readFile(folder_.path() / "model");
  cache::writeFile(folder_.path() / "model", std::span(good).first(good.size() - 1));
  EXPECT_EQ(explained(*model).code, "wrong-size");
  EXPECT_FALSE(device->prepareModelFromCache(options_, files()));
  // None of these files was interpreted.
  EXPECT_EQ(cache::trustedCacheBytes(), trusted);

  cache::writeFile(folder_.path() / "model", good);
  EXPECT_TRUE(explained(*model).isHit);
  std::filesystem::remove_all(folder_.path() / "state");
  EXPECT_EQ(explained(*model).code, "no-map");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "state"));
}

}  // namespace
}  // namespace hearth::cpu
