// SPDX-License-Identifier: Apache-2.0
// Constants that are kept in the store, converted, for kernels that read or pack them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "cache/open_store.h"
#include "cache/testing/store_test_util.h"
#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/platform/host_facts.h"
#include "drivers/cpu/testing/layer_chain.h"
#include "drivers/cpu/testing/run_once.h"

namespace hearth::cpu {
namespace {

namespace fs = std::filesystem;

using ::testing::Each;
using ::testing::FloatNear;

constexpr uint32_t kWidth = 1024;
constexpr size_t kWeightBytes = size_t{kWidth} * kWidth * sizeof(float);
constexpr float kBias = 1234.0f;  // which 16 bits hold

class StoredConstantsTest : public cache::StoreTest {
 protected:
  StoredConstantsTest() {
    fs::create_directory(folder_.path() / "models");
    const std::vector<float> weights(size_t{kWidth} * kWidth, 1.0f / kWidth);
    const std::vector<_Float16> biases(size_t{2} * kWidth, static_cast<_Float16>(kBias));
    std::vector<uint8_t> bytes(kWeightBytes + biases.size() * sizeof biases[0]);
    std::memcpy(bytes.data(), weights.data(), kWeightBytes);
    std::memcpy(bytes.data() + kWeightBytes, biases.data(), biases.size() * sizeof biases[0]);
    cache::writeFile(file_, bytes);
  }

  // A fully connected layer with biases of 16 bits.
  std::shared_ptr<const graph::Model> model() const {
    auto model = std::make_shared<graph::Model>(
        *layerChainOver(memory::Pool::openFile(file_).value(), {kWidth, kWidth}));
    graph::Subgraph& graph = model->main();
    const uint32_t bias = graph.operations[0].inputs[2];
    graph::Operand half = graph.operands[bias];
    half.type = graph::OperandType::kTensorFloat16;
    half.location.length = kWidth * sizeof(_Float16);
    graph.operands[bias].lifetime = graph::Lifetime::kTemporary;
    graph.operands[bias].location = {};
    graph.operations.insert(graph.operations.begin(),
                            {graph::OperationType::kDequantize,
                             {static_cast<uint32_t>(graph.operands.size())},
                             {bias},
                             ""});
    graph.operands.push_back(half);
    return model;
  }

  // The result of a start, as in a process of its own.
  std::vector<float> start() const {
    hal::PrepareOptions options;
    options.driverOptions = this->options().toTexts();
    const auto prepared = createCpuDevice()->prepareModel(model(), options, hal::Cache());
    EXPECT_TRUE(prepared) << prepared.error().toString();
    if (!prepared) return {};
    std::vector<float> result = runOnce(**prepared, std::vector<float>(kWidth, 1.0f), kWidth);
    cache::StoreOptions same = this->options();
    same.fingerprint = storeFingerprint();
    cache::openSegmentStore(same)->settle();
    return result;
  }

  const fs::path file_ = folder_.path() / "models" / "model.bin";
};

// The layer's packing is gone, and the biases that lie in the store are wrong. Until a check has
// found that, nothing may be packed from them: the packing would be wrong for good.
TEST_F(StoredConstantsTest, NothingIsPackedFromThem) {
  EXPECT_THAT(start(), Each(FloatNear(kBias + 1, 0.1f)));
  int damaged = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root() / "segments")) {
    if (!entry.is_regular_file()) continue;
    std::vector<uint8_t> bytes = cache::readFile(entry.path());
    if (bytes.size() > kWeightBytes) {
      fs::remove(entry.path());
      continue;
    }
    std::vector<uint8_t> right(sizeof kBias);
    std::memcpy(right.data(), &kBias, sizeof kBias);
    const auto found = std::ranges::search(bytes, right).begin();
    if (found == bytes.end()) continue;
    found[3] ^= 0x40;
    fs::permissions(entry.path(), fs::perms(0600));
    cache::writeFile(entry.path(), bytes);
    fs::permissions(entry.path(), fs::perms(0400));
    ++damaged;
  }
  EXPECT_EQ(damaged, 1);
  EXPECT_THAT(start(), Each(FloatNear(kBias + 1, 0.1f)));
  EXPECT_THAT(start(), Each(FloatNear(kBias + 1, 0.1f)));
}

}  // namespace
}  // namespace hearth::cpu
