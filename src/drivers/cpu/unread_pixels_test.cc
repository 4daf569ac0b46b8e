// SPDX-License-Identifier: Apache-2.0
// The driver does not compute pixels that no layer reads: ops/unread_pixels.h.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "drivers/cpu/cpu_device.h"
#include "drivers/cpu/testing/compared_models.h"
#include "drivers/cpu/testing/run_once.h"
#include "hal/device.h"

namespace hearth::cpu {
namespace {

constexpr uint32_t kSide = 8, kChannels = 16;
constexpr size_t kRead = size_t{kSide / 2} * (kSide / 2) * kChannels;

// Windows of three by three pixels, then of one: the stride of two is that of the first layer, or
// of the second. The results are the same.
graph::Model twoLayers(uint32_t batch, bool isFirst) {
  ModelBuilder builder;
  const uint32_t side = isFirst ? kSide / 2 : kSide;
  const uint32_t data = builder.input(kFloat, {batch, kSide, kSide, kChannels});
  const uint32_t between = builder.temporary(kFloat, {batch, side, side, kChannels});
  const uint32_t output = builder.output(kFloat, {batch, kSide / 2, kSide / 2, kChannels});
  const auto layer = [&](uint32_t from, uint32_t to, uint32_t window, int32_t end, int32_t stride) {
    const Dimensions shape = {kChannels, window, window, kChannels};
    const int32_t begin = window == 1 ? 0 : 1;
    std::vector<uint32_t> inputs = {
        from, builder.constant(kFloat, shape, randomFloats(countOf(shape), window)),
        builder.constant(kFloat, {kChannels}, randomFloats(kChannels, 10 + window))};
    for (const int32_t value : {begin, end, begin, end, stride, stride, 0})
      inputs.push_back(builder.scalar(value));
    builder.operation(OperationType::kConv2d, std::move(inputs), {to});
  };
  layer(data, between, 3, isFirst ? 0 : 1, isFirst ? 2 : 1);
  layer(between, output, 1, 0, isFirst ? 1 : 2);
  return builder.model();
}

std::shared_ptr<hal::PreparedModel> prepare(graph::Model model) {
  auto prepared = createCpuDevice()->prepareModel(
      std::make_shared<const graph::Model>(std::move(model)), {}, hal::Cache());
  EXPECT_TRUE(prepared) << prepared.error().toString();
  return prepared ? *prepared : nullptr;
}

TEST(UnreadPixelsTest, TakeNeitherMemoryNorTime) {
  const auto last = prepare(twoLayers(1, false));
  const auto first = prepare(twoLayers(1, true));
  ASSERT_TRUE(last != nullptr && first != nullptr);
  EXPECT_EQ(last->startReport().activationBytes, first->startReport().activationBytes);
  const std::vector<float> image = randomFloats(size_t{kSide} * kSide * kChannels, 3);
  EXPECT_EQ(runOnce(*last, image, kRead), runOnce(*first, image, kRead));
}

}  // namespace
}  // namespace hearth::cpu
