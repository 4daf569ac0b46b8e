// SPDX-License-Identifier: Apache-2.0
#include "ops/real_values.h"

#include <cmath>

#include "base/vector_dispatch.h"
#include "ops/half.h"
#include "ops/int4.h"
#include "ops/quantization.h"

namespace hearth::ops {
namespace {

template <typename T>
void dequantizeAll(const Tensor& tensor, std::vector<float>* values) {
  const T* data = tensor.as<T>();
  const float scale = stepOf(*tensor.operand);
  const int32_t zeroPoint = tensor.operand->zeroPoint;
  float* target = values->data();
  const size_t count = values->size();
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) target[i] = scale * static_cast<float>(data[i] - zeroPoint);
  });
}

void dequantizePerChannel(const Tensor& tensor, const int8_t* data, std::vector<float>* values) {
  const graph::PerChannelQuantization& quantization = tensor.operand->perChannel;
  size_t inner = 1;
  for (size_t i = quantization.channelDim + 1; i < tensor.rank(); ++i)
    inner *= tensor.dimensions[i];
  const size_t channels = quantization.scales.size();
  for (size_t i = 0; i < values->size(); ++i)
    (*values)[i] = quantization.scales[i / inner % channels] * static_cast<float>(data[i]);
}

void dequantizeInt4(const Tensor& tensor, std::vector<float>* values) {
  std::vector<int8_t> wide(values->size());
  for (size_t i = 0; i < wide.size(); ++i) wide[i] = int4At(tensor.as<uint8_t>(), i);
  if (!tensor.operand->perChannel.scales.empty())
    return dequantizePerChannel(tensor, wide.data(), values);
  for (size_t i = 0; i < wide.size(); ++i)
    (*values)[i] = tensor.operand->scale * static_cast<float>(wide[i]);
}

// quantize() without calls and branches, so that it vectorises.
template <typename T>
void quantizeAll(const std::vector<float>& values, const Tensor& tensor) {
  T* data = tensor.as<T>();
  const float* source = values.data();
  const size_t count = values.size();
  const double scale = stepOf(*tensor.operand);
  const double zeroPoint = tensor.operand->zeroPoint;
  const QuantizedRange range = quantizedRange(tensor.type());
  const double lowest = range.lowest;
  const double highest = range.highest;
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) {
      const double value = static_cast<double>(source[i]) / scale;
      const double whole = std::trunc(value);
      const double rest = value - whole;
      // Half away from zero. A NaN fails every comparison but the last.
      const double step = (rest >= 0.5 ? 1.0 : 0.0) - (rest <= -0.5 ? 1.0 : 0.0);
      double shifted = whole + step + zeroPoint;
      shifted = shifted == shifted ? shifted : zeroPoint;
      shifted = shifted < lowest ? lowest : shifted;
      shifted = shifted > highest ? highest : shifted;
      data[i] = static_cast<T>(static_cast<int32_t>(shifted));
    }
  });
}

}  // namespace

RealInput::RealInput(const Tensor& tensor) : size_(tensor.elementCount()) {
  const OperandType type = tensor.type();
  if (type == OperandType::kTensorFloat32 || type == OperandType::kFloat32) {
    data_ = tensor.as<float>();
    return;
  }
  copy_.resize(size_);
  data_ = copy_.data();
  switch (type) {
    case OperandType::kTensorFloat16:
    case OperandType::kFloat16:
      widenHalves(tensor.as<Half>(), size_, copy_.data());
      break;
    case OperandType::kTensorQuant8Asymm:
      dequantizeAll<uint8_t>(tensor, &copy_);
      break;
    case OperandType::kTensorQuant8AsymmSigned:
    case OperandType::kTensorQuant8Symm:
      dequantizeAll<int8_t>(tensor, &copy_);
      break;
    case OperandType::kTensorQuant8SymmPerChannel:
      dequantizePerChannel(tensor, tensor.as<int8_t>(), &copy_);
      break;
    case OperandType::kTensorQuant16Symm:
    case OperandType::kTensorInt16:
      dequantizeAll<int16_t>(tensor, &copy_);
      break;
    case OperandType::kTensorQuant16Asymm:
      dequantizeAll<uint16_t>(tensor, &copy_);
      break;
    case OperandType::kTensorInt4:
      dequantizeInt4(tensor, &copy_);
      break;
    default:
      break;
  }
}

RealOutput::RealOutput(const Tensor& tensor) : tensor_(tensor), size_(tensor.elementCount()) {
  if (tensor.type() == OperandType::kTensorFloat32) {
    data_ = tensor.as<float>();
  } else {
    buffer_.resize(size_);
    data_ = buffer_.data();
  }
}

void RealOutput::store() {
  switch (tensor_.type()) {
    case OperandType::kTensorFloat16:
      narrowFloats(buffer_.data(), size_, tensor_.as<Half>());
      break;
    case OperandType::kTensorQuant8Asymm:
      quantizeAll<uint8_t>(buffer_, tensor_);
      break;
    case OperandType::kTensorQuant8AsymmSigned:
    case OperandType::kTensorQuant8Symm:
      quantizeAll<int8_t>(buffer_, tensor_);
      break;
    case OperandType::kTensorQuant16Symm:
    case OperandType::kTensorInt16:
      quantizeAll<int16_t>(buffer_, tensor_);
      break;
    case OperandType::kTensorQuant16Asymm:
      quantizeAll<uint16_t>(buffer_, tensor_);
      break;
    default:
      break;
  }
}

}  // namespace hearth::ops
