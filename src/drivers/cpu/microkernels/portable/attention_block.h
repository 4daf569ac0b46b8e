// SPDX-License-Identifier: Apache-2.0
// Attention of a block of query rows that share keys and values. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/scaled_dot_product_attention.h"

namespace hearth::cpu {

// The vector instructions that the kernels use. A CPU also runs levels below its own.
enum class AttentionLevel { kNarrow, kAvx2, kAvx512 };
// The highest level of this CPU.
AttentionLevel attentionLevel();

// The most rows of a block.
inline constexpr size_t kAttentionRows = 8;
// Packed keys are padded to a multiple of this number of keys.
inline constexpr size_t kKeyPanel = 32;
// The elements of a packed value are padded to a multiple of this.
inline constexpr size_t kValuePanel = 16;

inline size_t paddedKeys(size_t keys) {
  return (keys + kKeyPanel - 1) / kKeyPanel * kKeyPanel;
}

// Elements from one row of logits to the next. One cache line more than needed: rows of a power of
// two would share few sets of the cache.
inline size_t logitsStride(size_t keys) {
  return paddedKeys(keys) + 16;
}

// Elements that the packed values of this many keys take.
inline size_t packedValuesSize(size_t keys, size_t valueSize) {
  return paddedKeys(keys) * ((valueSize + kValuePanel - 1) / kValuePanel * kValuePanel);
}

// The positions [begin, end) of keys. Value type.
struct KeyRange {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// How far below the greatest number of its row a number of a mask hides its key: soft-max makes 0
// of what lies more than 104 below the greatest, which leaves products of queries and keys that
// differ by 16,000 room. Exporters write -45,824, the smallest numbers of float16 and float32, or
// -infinity.
inline constexpr float kHidingDistance = 16384.0f;

// The range from the first to the last position that a row of a mask leaves: those whose number is
// neither -infinity nor kHidingDistance or more below the greatest number of the row. Empty where
// it leaves none, as one of -infinity does; NaN hides nothing. `stride` is 0 where one number masks
// all keys.
KeyRange seenKeys(const float* mask, size_t stride, uint32_t keys);

// Packs the keys of `range` for a block with many rows. `keys` points to position 0, positions are
// `stride` elements apart, and a key has `size` elements. A panel has as many keys as the inner
// loop takes: the first elements of all of them, then the second ones, and so on. `packed` has
// paddedKeys(keys) * size elements.
void packKeys(const float* keys, size_t stride, size_t size, KeyRange range, float* packed,
              AttentionLevel level = attentionLevel());

// The values of a group, from position 0 on.
struct AttentionValues {
  const float* first = nullptr;
  // Elements from one position to the next. Where values are transposed, from one element of a
  // value to the next, and the values of neighbouring positions are neighbours.
  size_t stride = 0;
  bool areTransposed = false;
};

// Packs the values of these positions, likewise: first the elements that an inner loop takes, of
// all keys, then the next ones. `packed` has packedValuesSize(keys, size) elements and begins with
// the position `firstPacked`.
void packValues(const AttentionValues& values, size_t size, KeyRange range, uint32_t firstPacked,
                size_t keys, float* packed, AttentionLevel level = attentionLevel());

// The memory of one block. Entries for rows from `rows` on repeat the last row.
struct AttentionBlock {
  std::array<const float*, kAttentionRows> queries{};
  std::array<const float*, kAttentionRows> masks{};  // null: no mask
  std::array<float*, kAttentionRows> outputs{};
  // Rows whose result is the mean of the values in `range`, whatever the products are.
  std::array<bool, kAttentionRows> areUniform{};
  size_t rows = 0;
  KeyRange range;               // the masks leave no keys outside it, in any row
  const float* keys = nullptr;  // of position 0
  AttentionValues values;
  size_t keyStride = 0;               // elements from one position to the next
  size_t maskStride = 0;              // the same, 0 or 1
  const float* packedKeys = nullptr;  // null: `keys` is read
  const float* packedValues = nullptr;
  uint32_t firstPacked = 0;  // the position with which packed keys and values begin
  float* logits = nullptr;   // [kAttentionRows][logitsStride(parameters.keys)]
};

// Computes the outputs of the first `rows` rows; overwrites the logits.
void attend(const ops::AttentionParameters& parameters, const AttentionBlock& block,
            AttentionLevel level = attentionLevel());

}  // namespace hearth::cpu
