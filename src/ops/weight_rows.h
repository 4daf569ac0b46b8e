// SPDX-License-Identifier: Apache-2.0
// Weights as rows of real numbers, read one at a time: a model's largest tensors need no copy in
// float.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "ops/operation.h"
#include "ops/validation.h"

namespace hearth::ops {

// Types of quantised weights whose rows WeightRows reads, in addition to the float types.
inline constexpr TypeSet kQuantizedWeights =
    OperandType::kTensorQuant8Symm | OperandType::kTensorQuant8SymmPerChannel |
    OperandType::kTensorQuant8AsymmSigned | OperandType::kTensorInt4;

// TENSOR_INT4 weights have one scale, a scale for each row, or no scale of their own but an
// argument `blockScales`: TENSOR_FLOAT16 or TENSOR_FLOAT32 of [rows, blocks], a scale for each run
// of rowSize / blocks elements. For validate(): input `weights` has one of these forms, and
// `blockScales` is omitted for all other weights.
inline constexpr size_t kNoBlockScales = SIZE_MAX;
Status validateWeightScales(const Signature& signature, size_t weights,
                            size_t blockScales = kNoBlockScales);
// For prepare(): the shape of `blockScales` fits that of `weights`; passes when it is omitted.
Status checkBlockScales(const OperationContext& context, size_t weights, size_t blockScales);

// A row is a slice along dimension 0. Both inputs have been checked as above and have data. The
// context must outlive this object. Thread-safe.
class WeightRows {
 public:
  WeightRows(const OperationContext& context, size_t weights, size_t blockScales);

  size_t rowSize() const { return rowSize_; }
  // Writes rowSize() numbers; row < dimension 0.
  void read(uint64_t row, float* target) const;

 private:
  float blockScale(uint64_t index) const;

  const Tensor& weights_;
  const Tensor* blockScales_ = nullptr;  // [rows, blocks]
  size_t rowSize_;
  size_t blockSize_ = 0;  // 0: no block scales
};

}  // namespace hearth::ops
