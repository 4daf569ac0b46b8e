// SPDX-License-Identifier: Apache-2.0
// Attention of some rows of queries that share keys and values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/scaled_dot_product_attention.h"

namespace hearth::cpu {

// What this CPU's widest instructions are; a lower one works as well.
enum class AttentionLevel { kNarrow, kAvx2, kAvx512 };
AttentionLevel attentionLevel();

// Rows that one block has at most.
inline constexpr size_t kAttentionRows = 8;
// The room of packed keys is a multiple of this.
inline constexpr size_t kKeyPanel = 32;
// The room of the elements of a packed value is a multiple of this.
inline constexpr size_t kValuePanel = 16;

inline size_t paddedKeys(size_t keys) {
  return (keys + kKeyPanel - 1) / kKeyPanel * kKeyPanel;
}

// Of a row of logits. A line more than needed: rows of a power of two would share few sets of the
// cache.
inline size_t logitsStride(size_t keys) {
  return paddedKeys(keys) + 16;
}

// Of packed values of so many keys.
inline size_t packedValuesSize(size_t keys, size_t valueSize) {
  return paddedKeys(keys) * ((valueSize + kValuePanel - 1) / kValuePanel * kValuePanel);
}

// Positions of keys. Value type.
struct KeyRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// From the first position that a row of a mask leaves to the last one; empty where it leaves none.
KeyRange seenKeys(const float* mask, size_t stride, uint32_t keys);

// Keys [range.begin, range.end), of which `keys` is position 0 and each one has `size` elements,
// turned for a block with many rows: panels of as many keys as its inner loop takes, each with all
// keys' first elements, then all their second ones. `packed` has paddedKeys(keys) * size elements.
void packKeys(const float* keys, size_t stride, size_t size, KeyRange range, float* packed,
              AttentionLevel level = attentionLevel());

// Values of those keys, of which `values` is position 0 and each one has `size` elements: the
// elements that an inner loop takes of all keys, then the next ones. `packed` has
// packedValuesSize(keys, size) elements and begins with the position `firstPacked`.
void packValues(const float* values, size_t stride, size_t size, KeyRange range,
                uint32_t firstPacked, size_t keys, float* packed,
                AttentionLevel level = attentionLevel());

// Where one block lies. Rows from `rows` on repeat the last one.
struct AttentionBlock {
  std::array<const float*, kAttentionRows> queries{};
  std::array<const float*, kAttentionRows> masks{};  // null: no mask
  std::array<float*, kAttentionRows> outputs{};
  size_t rows = 0;
  KeyRange range;               // outside it the masks leave nothing of any row
  const float* keys = nullptr;  // of position 0, as is `values`
  const float* values = nullptr;
  size_t keyStride = 0;  // from one position to the next, in elements, as the two below
  size_t valueStride = 0;
  size_t maskStride = 0;              // 0 or 1
  const float* packedKeys = nullptr;  // null: none
  const float* packedValues = nullptr;
  uint32_t firstPacked = 0;  // the position that they begin with
  float* logits = nullptr;   // [kAttentionRows][logitsStride(parameters.keys)]
};

void attend(const ops::AttentionParameters& parameters, const AttentionBlock& block,
            AttentionLevel level = attentionLevel());

}  // namespace hearth::cpu
