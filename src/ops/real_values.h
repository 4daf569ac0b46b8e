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

// All elements of an input, dequantised: scale * (value - zeroPoint), with the channels' own scales
// if the operand has such. A view for float32 tensors, a copy for all others. The tensor has data
// and a type of kRealTensors, or is a FLOAT32 or FLOAT16 scalar. A TENSOR_INT4 operand must have
// scales.
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

// The buffer to which a kernel writes an output's real values. For float32 it is the tensor itself.
// For all other types store() rounds (half to even for float16, half away from zero for quantised
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
