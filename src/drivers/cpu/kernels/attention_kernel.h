// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "drivers/cpu/kernels/kernel.h"
#include "ops/scaled_dot_product_attention.h"

namespace hearth::cpu {

// What a mask does to products: its numbers are added to them, or its booleans say which of them
// count.
enum class MaskKind { kSum, kOpenWhereTrue, kOpenWhereFalse };

// Where the tensors of an attention lie. Its rows, each a query of one head, are divided into
// groups that share keys and values. Offsets and strides count elements. Value type.
struct AttentionLayout {
  ValueId queries = 0, keys = 0, values = 0, mask = 0, output = 0;

  // Of queries and keys, of values, the scale and the cap. The other numbers are not read.
  ops::AttentionParameters parameters;
  size_t rowsPerGroup = 0;
  std::vector<size_t> keyOffsets;    // by group: its first key
  std::vector<size_t> valueOffsets;  // by group: its first value
  size_t keyStride = 0;              // from one key of a group to the next
  // From one value to the next, or, where values are transposed, from the elements 0 of all values
  // to their elements 1.
  size_t valueStride = 0;
  bool areValuesTransposed = false;

  // Queries and output lie row by row, each at a place. Row r of group g is at firstPlaces[g] +
  // r / placesPerRun * runStride + r % placesPerRun.
  std::vector<size_t> firstPlaces;
  size_t placesPerRun = 1;
  size_t runStride = 1;

  // By place: its row of the mask; empty without a mask. A row has an element for each key, or one
  // for all of them.
  std::vector<uint32_t> maskRows;
  size_t maskRowCount = 0;
  bool isMaskPerKey = true;
  MaskKind maskKind = MaskKind::kSum;
  // Of masks of booleans: a row that leaves no key gives the mean of all values; else NaN.
  bool isUniformWhereHidden = false;

  size_t groups() const { return keyOffsets.size(); }
};

// The kernel for float32 tensors. It reads only the keys and values from the first to the last one
// that a row of the mask leaves (seenKeys()).
std::unique_ptr<Kernel> makeAttentionKernel(std::shared_ptr<const AttentionLayout> layout);

// For each row of a tensor, which runs along its last dimension, the row of another one that it
// reads. The other dimensions of that one repeat until they fill the tensor's, so each divides the
// one that stands as far from the end; there are no more of them than in the tensor.
std::vector<uint32_t> repeatedRows(const ops::Dimensions& tensor, const ops::Dimensions& repeated);

}  // namespace hearth::cpu
