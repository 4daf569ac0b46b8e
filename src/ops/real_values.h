// SPDX-License-Identifier: Apache-2.0
// The elements of a tensor as real numbers, whatever its element type: for kernels whose arithmetic
// is float and whose types are float32, float16 and the quantised ones.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ops/operation.h"
#include "ops/validation.h"

namespace hearth::ops {

// The types that RealInput and RealOutput take.
inline constexpr TypeSet kRealTensors =
    kFloatTensors | kQuant8Tensors | OperandType::kTensorQuant8Symm |
    OperandType::kTensorQuant8SymmPerChannel | OperandType::kTensorQuant16Symm |
    OperandType::kTensorQuant16Asymm | OperandType::kTensorInt16 | OperandType::kTensorInt4;

// All elements of an input, dequantised: scale * (value - zeroPoint), per channel where the operand
// is. A view of float32 tensors, a copy of all others. The tensor has data and a type of
// kRealTensors. Scalars FLOAT32 and FLOAT16 are taken as well.
// TENSOR_INT4 needs scales in its operand.
class RealInput {
 public:
  explicit RealInput(const Tensor& tensor);
  RealInput(const RealInput&) = delete;
  RealInput& operator=(const RealInput&) = delete;

  const float* data() const { return data_; }
  size_t size() const { return size_; }
  float operator[](size_t index) const { return data_[index]; }
  const float* begin() const { return data_; }
  const float* end() const { return data_ + size_; }

 private:
  std::vector<float> copy_;
  const float* data_ = nullptr;
  size_t size_ = 0;
};

// Where a kernel writes an output's real values. For float32 that is the tensor itself; for all
// others a buffer that store() rounds (half to even for float16, half away from zero for quantised
// types), saturates and writes. NaN becomes the zero point of a quantised type.
class RealOutput {
 public:
  explicit RealOutput(const Tensor& tensor);
  RealOutput(const RealOutput&) = delete;
  RealOutput& operator=(const RealOutput&) = delete;

  float* data() { return data_; }
  size_t size() const { return size_; }
  float& operator[](size_t index) { return data_[index]; }

  // Must be called last; writes nothing for float32.
  void store();

 private:
  const Tensor& tensor_;
  std::vector<float> buffer_;
  float* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hearth::ops
