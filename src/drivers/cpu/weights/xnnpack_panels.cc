// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/xnnpack_panels.h"

#include <hearth_xnnpack.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

#include "base/immortal.h"
#include "drivers/cpu/microkernels/x86/amx/amx_gemm.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_qd8_panels.h"
#include "drivers/cpu/microkernels/x86/avx512/qd8_f32_qc8w_gemm.h"
#include "drivers/cpu/microkernels/x86/avx512/qs8_gemm.h"
#include "drivers/cpu/microkernels/x86/f32_gemm.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "drivers/cpu/platform/host_facts.h"
#include "drivers/cpu/platform/kernel_traits.h"
#include "drivers/cpu/platform/xnn_operator.h"
#include "drivers/cpu/weights/packed_weights.h"

namespace hearth::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Packs [columns][taps][channels] weights and compares the result with the description of F32Gemm:
// of a convolution with windows of `side` by `side`, or of a fully connected layer if that is 0.
bool packsF32Panels(uint32_t side, size_t channels, size_t columns) {
  const size_t taps = std::max<size_t>(1, size_t{side} * side);
  std::vector<float> weights(columns * taps * channels);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i);
  std::vector<float> bias(columns);
  for (size_t i = 0; i < columns; ++i) bias[i] = -1 - static_cast<float>(i);
  PackedWeights packed(true, PackedWeights::kProbeGroup);
  const WeightPlace place;
  xnn_operator_t op = nullptr;
  const xnn_status status = packed.create(place, "CONV_2D", nullptr, [&] {
    if (side == 0)
      return xnn_create_fully_connected_nc_f32(channels, columns, channels, columns, weights.data(),
                                               bias.data(), -kInfinity, kInfinity, 0, nullptr,
                                               packed.provider(), &op);
    return xnn_create_convolution2d_nhwc_f32(
        0, 0, 0, 0, side, side, 1, 1, 1, 1, 1, channels, columns, channels, columns, weights.data(),
        bias.data(), -kInfinity, kInfinity, 0, nullptr, packed.provider(), &op);
  });
  const XnnOperator owned(op);
  // A lack of memory says nothing of the layout, so it must not become a remembered fact.
  if (status == xnn_status_out_of_memory) throw std::bad_alloc();
  F32Gemm product;
  product.taps = taps;
  product.channels = channels;
  product.columns = columns;
  const size_t size = product.panels() * product.panelSize();
  if (status != xnn_status_success || packed.bytesOf(place).size() < size * sizeof(float))
    return false;
  const auto* values = reinterpret_cast<const float*>(packed.bytesOf(place).data());
  const size_t width = f32Tile().columns;
  for (size_t column = 0; column < columns; ++column) {
    const float* lane = values + column / width * product.panelSize() + column % width;
    if (lane[0] != bias[column]) return false;
    for (size_t k = 0; k < taps * channels; ++k)
      if (lane[(k + 1) * width] != weights[column * taps * channels + k]) return false;
  }
  return true;
}

// Packs [columns][taps][channels] weights and compares the result with the description of the
// product, which is a Qs8Gemm or an AmxGemm with panels of kColumns and groups of kGroup inputs, to
// which it adds kOffset: of a convolution with windows of `side` by `side`, or of a fully connected
// layer if that is 0.
template <typename Product, size_t kColumns, size_t kGroup, int32_t kOffset>
bool packsInt8Panels(uint32_t side, size_t channels, size_t columns) {
  constexpr int8_t kInputZero = 3;
  const size_t taps = std::max<size_t>(1, size_t{side} * side);
  std::vector<int8_t> weights(columns * taps * channels);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<int8_t>(i * 37 + i / 251);
  std::vector<int32_t> bias(columns);
  for (size_t i = 0; i < columns; ++i) bias[i] = static_cast<int32_t>(i * 3) - 50;
  std::vector<float> scales(columns + XNN_EXTRA_QUANTIZATION_PARAMS, 1.0f);
  for (size_t i = 0; i < columns; ++i) scales[i] = 0.01f / static_cast<float>(i + 3);
  constexpr float kInputScale = 0.3f;
  constexpr float kOutputScale = 0.7f;
  PackedWeights packed(true, PackedWeights::kProbeGroup);
  const WeightPlace place;
  xnn_operator_t op = nullptr;
  const xnn_status status = packed.create(place, "CONV_2D", nullptr, [&] {
    if (side == 0)
      return xnn_create_fully_connected_nc_qs8_qc8w(channels, columns, channels, columns,
                                                    kInputZero, kInputScale, scales.data(),
                                                    weights.data(), bias.data(), -5, kOutputScale,
                                                    -128, 127, 0, nullptr, packed.provider(), &op);
    return xnn_create_convolution2d_nhwc_qs8_qc8w(
        0, 0, 0, 0, side, side, 1, 1, 1, 1, 1, channels, columns, channels, columns, kInputZero,
        kInputScale, scales.data(), weights.data(), bias.data(), -5, kOutputScale, -128, 127, 0,
        nullptr, packed.provider(), &op);
  });
  const XnnOperator owned(op);
  // A lack of memory says nothing of the layout, so it must not become a remembered fact.
  if (status == xnn_status_out_of_memory) throw std::bad_alloc();
  const size_t padded = (channels + kGroup - 1) / kGroup * kGroup;
  Product product;
  product.inputs = taps * padded;
  product.columns = columns;
  if (status != xnn_status_success ||
      packed.bytesOf(place).size() < product.panels() * product.panelBytes())
    return false;
  for (size_t column = 0; column < columns; ++column) {
    const uint8_t* const panel =
        packed.bytesOf(place).data() + column / kColumns * product.panelBytes();
    const uint8_t* const groups = panel + kColumns * sizeof(int32_t);
    const size_t lane = column % kColumns;
    int32_t sum = 0;
    for (size_t k = 0; k < product.inputs; ++k) {
      const size_t channel = k % padded;
      const int8_t weight = channel < channels
                                ? weights[(column * taps + k / padded) * channels + channel]
                                : int8_t{0};
      const uint8_t* const group = groups + (k / kGroup * kColumns + lane) * kGroup;
      if (group[k % kGroup] != static_cast<uint8_t>(weight)) return false;
      sum += weight;
    }
    const int32_t constant = bias[column] - sum * (kInputZero + kOffset);
    const float factor = kInputScale * scales[column] / kOutputScale;
    const uint8_t* const last = groups + kColumns * product.inputs;
    if (std::memcmp(panel + lane * sizeof constant, &constant, sizeof constant) != 0 ||
        std::memcmp(last + lane * sizeof factor, &factor, sizeof factor) != 0)
      return false;
  }
  return true;
}

// Packs weights at `place` and compares the result with the description of the product, which is a
// Qd8Gemm or an Avx2Qd8Panels with panels of kColumns: of a fully connected layer, or of a
// convolution with windows of `window` by `window` if that is not 0.
template <typename Product, size_t kColumns>
bool packsHybridPanels(PackedWeights& packed, WeightPlace place, size_t channels, size_t columns,
                       uint32_t window = 0) {
  const size_t inputs = window == 0 ? channels : window * window * channels;
  // XNNPACK reads past the end of weights and scales.
  std::vector<int8_t> weights(columns * inputs + XNN_EXTRA_BYTES);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<int8_t>(i * 7 % 255 - 127);
  std::vector<float> scales(columns + XNN_EXTRA_QUANTIZATION_PARAMS, 1.0f);
  std::vector<float> biases(columns);
  for (size_t i = 0; i < columns; ++i) {
    scales[i] = 1.0f + 0.25f * static_cast<float>(i);
    biases[i] = -1.0f - static_cast<float>(i);
  }
  xnn_operator_t op = nullptr;
  const xnn_status status = packed.create(place, "FULLY_CONNECTED", nullptr, [&] {
    if (window == 0)
      return xnn_create_fully_connected_nc_qd8_f32_qc8w(
          inputs, columns, inputs, columns, scales.data(), weights.data(), biases.data(),
          -kInfinity, kInfinity, 0, nullptr, packed.provider(), &op);
    const uint32_t padding = window / 2;
    return xnn_create_convolution2d_nhwc_qd8_f32_qc8w(
        padding, padding, padding, padding, window, window, 1, 1, 1, 1, 1, channels, columns,
        channels, columns, scales.data(), weights.data(), biases.data(), -kInfinity, kInfinity, 0,
        nullptr, packed.provider(), &op);
  });
  const XnnOperator owned(op);
  // A lack of memory says nothing of the layout, so it must not become a remembered fact.
  if (status == xnn_status_out_of_memory) throw std::bad_alloc();
  Product product;
  product.inputs = inputs;
  product.columns = columns;
  if (status != xnn_status_success ||
      packed.bytesOf(place).size() < product.panels() * product.panelBytes())
    return false;
  for (size_t column = 0; column < product.panels() * kColumns; ++column) {
    const uint8_t* panel = packed.bytesOf(place).data() + column / kColumns * product.panelBytes();
    const size_t lane = column % kColumns;
    const bool isInside = column < columns;
    int32_t sum = 0;
    for (size_t i = 0; i < (inputs + kQd8Group - 1) / kQd8Group * kQd8Group; ++i) {
      const int8_t weight = isInside && i < inputs ? weights[column * inputs + i] : int8_t{0};
      const uint8_t* at = panel + kColumns * sizeof(int32_t) +
                          i / kQd8Group * kColumns * kQd8Group + lane * kQd8Group + i % kQd8Group;
      if (isInside && static_cast<int8_t>(*at) != weight) return false;
      sum += weight;
    }
    if (!isInside) continue;
    int32_t weightSum = 0;
    std::memcpy(&weightSum, panel + lane * sizeof(int32_t), sizeof weightSum);
    const uint8_t* end =
        panel + kColumns * sizeof(int32_t) + product.panelBytes() - 3 * kColumns * sizeof(float);
    float found[2];
    std::memcpy(&found[0], end + lane * sizeof(float), sizeof(float));
    std::memcpy(&found[1], end + (kColumns + lane) * sizeof(float), sizeof(float));
    if (weightSum != -sum || found[0] != scales[column] || found[1] != biases[column]) return false;
  }
  return true;
}

// Whether a product reads XNNPACK's int8 panels: for layers of 5 channels and up to `kMostColumns`
// columns, of which `kPacks` looks at one.
template <PackedPanels kPanels, auto kHasInstructions, auto kPacks, size_t kMostColumns>
bool readsInt8Panels() {
  static constinit base::Immortal<bool> reads;
  return reads.get([] {
    return kHasInstructions() && readsPackings(kPanels, [] {
             return initializeXnnpack() && kPacks(0, 5, 37) && kPacks(1, 5, 37) &&
                    kPacks(3, 5, kMostColumns);
           });
  });
}

}  // namespace

bool hasF32Gemm() {
  static constinit base::Immortal<bool> has;
  return has.get([] {
    return cpuHasF32Gemm() && readsPackings(PackedPanels::kFloat, [] {
             return initializeXnnpack() && packsF32Panels(0, 5, 37) && packsF32Panels(1, 5, 37) &&
                    packsF32Panels(3, 5, 37);
           });
  });
}

bool hasQs8Gemm() {
  constexpr auto kPacks = packsInt8Panels<Qs8Gemm, kQs8Columns, kQs8Group, 128>;
  return readsInt8Panels<PackedPanels::kInt8, hasAvx512Vnni, kPacks, 37>();
}

bool hasAmxGemm() {
  constexpr auto kPacks = packsInt8Panels<AmxGemm, kAmxColumns, kAmxGroup, 0>;
  return readsInt8Panels<PackedPanels::kInt8Tiles, cpuHasAmxGemm, kPacks, 133>();
}

bool hasQd8Gemm() {
  static constinit base::Immortal<bool> has;
  return has.get([] {
    return cpuHasQd8Gemm() && readsPackings(PackedPanels::kHybrid, [] {
             PackedWeights packed(true, PackedWeights::kProbeGroup);
             constexpr auto packs = packsHybridPanels<Qd8Gemm, kQd8Columns>;
             return initializeXnnpack() && packs(packed, {0, 0}, 13, 37, 0) &&
                    packs(packed, {0, 1}, 16, 16, 0) && packs(packed, {0, 2}, 16, 37, 3) &&
                    packs(packed, {0, 3}, 8, 16, 1);
           });
  });
}

bool hasAvx2Qd8Panels() {
  static constinit base::Immortal<bool> has;
  return has.get([] {
    return hasAvx2() && !cpuHasQd8Gemm() && readsPackings(PackedPanels::kHybrid, [] {
             PackedWeights packed(true, PackedWeights::kProbeGroup);
             constexpr auto packs = packsHybridPanels<Avx2Qd8Panels, Avx2Qd8Panels::kColumns>;
             return initializeXnnpack() && packs(packed, {0, 0}, 13, 37, 0) &&
                    packs(packed, {0, 1}, 16, 16, 0);
           });
  });
}

}  // namespace hearth::cpu
