// SPDX-License-Identifier: Apache-2.0
// Weights that XNNPACK packs in parts are what it packs as a whole.
#include "drivers/cpu/lowering/packing_parts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/fault.h"
#include "cache/testing/memory_store_test.h"
#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/platform/kernel_traits.h"

namespace hearth::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(PackingPartsTest, CoverTheChannelsInOrder) {
  EXPECT_EQ(packingParts(1000, 1000).size(), 1u);
  for (const size_t channels : {65u, 128u, 191u, 192u, 1000u, 1280u, 5000u})
    for (const size_t bytes : {3000u, 9216u, 40'000u, 1'000'000u}) {
      SCOPED_TRACE(testing::Message() << channels << " channels of " << bytes << " bytes");
      const std::vector<ChannelRange> parts = packingParts(channels, bytes);
      size_t next = 0;
      for (const ChannelRange part : parts) {
        EXPECT_EQ(part.first, next);
        EXPECT_EQ(part.first % 64, 0u);
        EXPECT_GE(part.count, std::min<size_t>(channels, 64));
        next += part.count;
      }
      EXPECT_EQ(next, channels);
    }
}

// A layer of one of the kinds that are packed in parts: [channels][taps][inputs] weights.
struct Layer {
  const char* name;
  size_t weightBytes;  // of one number
  uint32_t window;     // 0: fully connected
  std::function<xnn_status(const Layer&, ChannelRange, xnn_weights_cache_t, xnn_operator_t*)>
      create;
  size_t channels = 200;
  size_t inputs = 0;
  std::vector<uint8_t> weights;
  std::vector<float> floats;   // biases
  std::vector<int32_t> whole;  // the same
  std::vector<float> scales;

  size_t rowBytes() const { return weightBytes * inputs * std::max(1u, window * window); }
  const void* row(size_t channel) const { return weights.data() + channel * rowBytes(); }
  const int8_t* bytes(ChannelRange part) const {
    return static_cast<const int8_t*>(row(part.first));
  }
};

xnn_status createFloat(const Layer& l, ChannelRange part, xnn_weights_cache_t cache,
                       xnn_operator_t* op) {
  const auto* weights = static_cast<const float*>(l.row(part.first));
  if (l.window == 0)
    return xnn_create_fully_connected_nc_f32(l.inputs, part.count, l.inputs, l.channels, weights,
                                             &l.floats[part.first], -kInfinity, kInfinity, 0,
                                             nullptr, cache, op);
  return xnn_create_convolution2d_nhwc_f32(
      1, 1, 1, 1, l.window, l.window, 1, 1, 1, 1, 1, l.inputs, part.count, l.inputs, l.channels,
      weights, &l.floats[part.first], -kInfinity, kInfinity, 0, nullptr, cache, op);
}

xnn_status createHybrid(const Layer& l, ChannelRange part, xnn_weights_cache_t cache,
                        xnn_operator_t* op) {
  if (l.window == 0)
    return xnn_create_fully_connected_nc_qd8_f32_qc8w(
        l.inputs, part.count, l.inputs, l.channels, &l.scales[part.first], l.bytes(part),
        &l.floats[part.first], -kInfinity, kInfinity, 0, nullptr, cache, op);
  return xnn_create_convolution2d_nhwc_qd8_f32_qc8w(
      1, 1, 1, 1, l.window, l.window, 1, 1, 1, 1, 1, l.inputs, part.count, l.inputs, l.channels,
      &l.scales[part.first], l.bytes(part), &l.floats[part.first], -kInfinity, kInfinity, 0,
      nullptr, cache, op);
}

xnn_status createPerChannel(const Layer& l, ChannelRange part, xnn_weights_cache_t cache,
                            xnn_operator_t* op) {
  if (l.window == 0)
    return xnn_create_fully_connected_nc_qs8_qc8w(
        l.inputs, part.count, l.inputs, l.channels, 3, 0.5f, &l.scales[part.first], l.bytes(part),
        &l.whole[part.first], 1, 0.7f, -128, 127, 0, nullptr, cache, op);
  return xnn_create_convolution2d_nhwc_qs8_qc8w(
      1, 1, 1, 1, l.window, l.window, 1, 1, 1, 1, 1, l.inputs, part.count, l.inputs, l.channels, 3,
      0.5f, &l.scales[part.first], l.bytes(part), &l.whole[part.first], 1, 0.7f, -128, 127, 0,
      nullptr, cache, op);
}

xnn_status createSigned(const Layer& l, ChannelRange part, xnn_weights_cache_t cache,
                        xnn_operator_t* op) {
  if (l.window == 0)
    return xnn_create_fully_connected_nc_qs8(l.inputs, part.count, l.inputs, l.channels, 3, 0.5f,
                                             0.01f, l.bytes(part), &l.whole[part.first], 1, 0.7f,
                                             -128, 127, 0, nullptr, cache, op);
  return xnn_create_convolution2d_nhwc_qs8(
      1, 1, 1, 1, l.window, l.window, 1, 1, 1, 1, 1, l.inputs, part.count, l.inputs, l.channels, 3,
      0.5f, 0.01f, l.bytes(part), &l.whole[part.first], 1, 0.7f, -128, 127, 0, nullptr, cache, op);
}

xnn_status createUnsigned(const Layer& l, ChannelRange part, xnn_weights_cache_t cache,
                          xnn_operator_t* op) {
  const auto* weights = static_cast<const uint8_t*>(l.row(part.first));
  if (l.window == 0)
    return xnn_create_fully_connected_nc_qu8(l.inputs, part.count, l.inputs, l.channels, 3, 0.5f,
                                             120, 0.01f, weights, &l.whole[part.first], 1, 0.7f, 0,
                                             255, 0, nullptr, cache, op);
  return xnn_create_convolution2d_nhwc_qu8(
      1, 1, 1, 1, l.window, l.window, 1, 1, 1, 1, 1, l.inputs, part.count, l.inputs, l.channels, 3,
      0.5f, 120, 0.01f, weights, &l.whole[part.first], 1, 0.7f, 0, 255, 0, nullptr, cache, op);
}

class PackingInPartsTest : public cache::MemoryStoreTest,
                           public testing::WithParamInterface<Layer> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(initializeXnnpack());
    layer_ = GetParam();
    // Odd, so that rows end within a step of every kernel; more than two megabytes.
    layer_.inputs =
        (size_t{11'000} / layer_.weightBytes / std::max(1u, layer_.window * layer_.window)) | 1;
    layer_.weights.resize(layer_.channels * layer_.rowBytes() + XNN_EXTRA_BYTES);
    if (layer_.weightBytes == sizeof(float)) {
      auto* const numbers = reinterpret_cast<float*>(layer_.weights.data());
      std::iota(numbers, numbers + layer_.channels * layer_.rowBytes() / sizeof(float), -1e5f);
    } else {
      for (size_t i = 0; i < layer_.weights.size(); ++i)
        layer_.weights[i] = static_cast<uint8_t>(i * 37 + i / 251);
    }
    layer_.floats.resize(layer_.channels);
    std::iota(layer_.floats.begin(), layer_.floats.end(), -20.5f);
    layer_.whole.resize(layer_.channels);
    std::iota(layer_.whole.begin(), layer_.whole.end(), -20);
    layer_.scales.resize(layer_.channels + XNN_EXTRA_QUANTIZATION_PARAMS, 1.0f);
    for (size_t i = 0; i < layer_.channels; ++i)
      layer_.scales[i] = 0.01f / static_cast<float>(i + 3);
  }

  // Packs the layer as the lowering does.
  Status pack(const std::shared_ptr<PackedWeights>& weights) {
    LayerPacking packing;
    packing.weights = weights.get();
    return packByXnnpack(layer_.name, [&](xnn_operator_t* op) {
      return createInParts(
          packing, "TEST", layer_.channels, layer_.rowBytes(), {},
          [&](ChannelRange part, xnn_operator_t* partOp) {
            return layer_.create(layer_, part, weights->provider(), partOp);
          },
          [&] { return layer_.create(layer_, {0, layer_.channels}, weights->provider(), op); });
    });
  }

  // Weights whose parts are written into `store`.
  std::shared_ptr<PackedWeights> partedWeights(const std::shared_ptr<cache::SegmentStore>& store) {
    auto weights = std::make_shared<PackedWeights>(true);
    weights->writeParts({.start = [store](size_t size) { return store->beginWriting(size); },
                         .publish =
                             [this](const std::shared_ptr<PackedSegment>&,
                                    const std::unique_ptr<cache::SegmentWriter>&) {
                               ++published_;
                             }});
    return weights;
  }

  Layer layer_;
  int published_ = 0;
};

TEST_P(PackingInPartsTest, GivesTheBytesOfTheWhole) {
  const auto whole = std::make_shared<PackedWeights>(true);
  ASSERT_TRUE(pack(whole));
  const std::span<const uint8_t> right = whole->bytesOf({});
  ASSERT_GE(right.size(), PackedWeights::kOwnSegment);
  const auto parted = partedWeights(open());
  ASSERT_TRUE(pack(parted));
  EXPECT_EQ(published_, 1);
  EXPECT_TRUE(cache::equal(parted->bytesOf({}), right));
  EXPECT_EQ(parted->packedBytes(), whole->packedBytes());
  // The operator of the whole found them.
  EXPECT_EQ(parted->droppedPresets(), 0u);
  EXPECT_EQ(parted->repackedBytes(), 0u);
  // A second one packs nothing.
  ASSERT_TRUE(pack(parted));
  EXPECT_EQ(published_, 1);
}

#ifdef HEARTH_TEST_HOOKS
TEST_P(PackingInPartsTest, IsDoneAsAWholeWhereWritingFails) {
  const auto whole = std::make_shared<PackedWeights>(true);
  ASSERT_TRUE(pack(whole));
  const auto store = open();
  for (const char* fault : {"fallocate:ENOSPC", "pwrite:ENOSPC", "pwrite:EIO:2", "open:EMFILE"}) {
    SCOPED_TRACE(fault);
    const auto parted = partedWeights(store);
    ASSERT_TRUE(base::sys::injectText(fault));
    const Status packed = pack(parted);
    base::sys::clearFaults();
    ASSERT_TRUE(packed);
    EXPECT_EQ(published_, 0);
    EXPECT_TRUE(cache::equal(parted->bytesOf({}), whole->bytesOf({})));
    EXPECT_EQ(parted->packedBytes(), whole->packedBytes());
    EXPECT_TRUE(std::filesystem::is_empty(root() / "tmp"));
  }
}
#endif

INSTANTIATE_TEST_SUITE_P(Kinds, PackingInPartsTest,
                         testing::Values(Layer{"f32", 4, 0, createFloat},
                                         Layer{"f32_convolution", 4, 3, createFloat},
                                         Layer{"hybrid", 1, 0, createHybrid},
                                         Layer{"hybrid_convolution", 1, 3, createHybrid},
                                         Layer{"per_channel", 1, 0, createPerChannel},
                                         Layer{"per_channel_convolution", 1, 3, createPerChannel},
                                         Layer{"int8", 1, 0, createSigned},
                                         Layer{"int8_convolution", 1, 3, createSigned},
                                         Layer{"uint8", 1, 0, createUnsigned},
                                         Layer{"uint8_convolution", 1, 3, createUnsigned}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace hearth::cpu
