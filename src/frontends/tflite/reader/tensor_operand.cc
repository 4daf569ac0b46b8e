// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/reader/tensor_operand.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "frontends/tflite/reader/text.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;

// TFLite's own limit for any operation.
constexpr size_t kMaxRank = 8;

// The inner loop has no early exit, so that the compiler can vectorise it.
bool areAllZero(std::span<const uint8_t> bytes) {
  constexpr size_t kBlock = 256;
  while (bytes.size() >= kBlock) {
    uint64_t bits = 0;
    for (size_t i = 0; i < kBlock; i += sizeof bits) {
      uint64_t next;
      std::memcpy(&next, bytes.data() + i, sizeof next);
      bits |= next;
    }
    if (bits != 0) return false;
    bytes = bytes.subspan(kBlock);
  }
  return std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; });
}

struct Quantization {
  const flatbuffers::Vector<float>* scales = nullptr;
  const flatbuffers::Vector<int64_t>* zeroPoints = nullptr;
  int64_t dimension = 0;
  bool hasBlocks = false;  // the scales are another tensor

  size_t scaleCount() const { return scales == nullptr ? 0 : scales->size(); }
  int64_t zeroPoint() const {
    return zeroPoints == nullptr || zeroPoints->size() == 0 ? 0 : zeroPointAt(*zeroPoints, 0);
  }
  bool isSymmetric() const {
    if (zeroPoints == nullptr) return true;
    const size_t bytes = zeroPoints->size() * sizeof(int64_t);
    return bytes == 0 || areAllZero({zeroPoints->Data(), bytes});
  }
};

// Whether the tensor has a scale for each channel. There may be very many, so they are read only
// once, when they become the operand's.
bool isPerChannel(schema::TensorType type, const Quantization& quantization) {
  const bool mayBe = type == schema::TensorType::INT8 || type == schema::TensorType::INT4 ||
                     type == schema::TensorType::INT2;
  return mayBe && !quantization.hasBlocks && quantization.scaleCount() > 1;
}

template <typename Scales>
Status checkScales(const Scales& scales, const std::string& name) {
  for (uint32_t i = 0; i < scales.size(); ++i) {
    const float scale = scales[i];
    if (!std::isfinite(scale) || scale < 0.0f)
      return fail(ErrorCode::kBadData,
                  "Scale {} of the tensor \"{}\" is {}, it must be finite and positive.", i, name,
                  scale);
  }
  return {};
}

Result<Quantization> readQuantization(const schema::Tensor& tensor, schema::TensorType type,
                                      const std::string& name) {
  Quantization quantization;
  const schema::QuantizationParameters* source = tensor.quantization();
  if (source == nullptr) return quantization;
  if (source->details_type() == schema::QuantizationDetails::MultiAxisQuantization)
    return fail(ErrorCode::kUnsupported,
                "The tensor \"{}\" is quantised along several axes, which is not supported.", name);
  if (const auto* blocks = source->details_as_BlockwiseQuantization()) {
    // Zero points would be another tensor, which is never tensor 0.
    if (type != schema::TensorType::INT4 || blocks->zero_points() > 0)
      return fail(ErrorCode::kUnsupported,
                  "The tensor \"{}\" of type {} is quantised by blocks{}, which is not supported.",
                  name, tensorTypeName(type), blocks->zero_points() > 0 ? " with zero points" : "");
    quantization.hasBlocks = true;
    return quantization;
  }
  quantization.scales = source->scale();
  quantization.zeroPoints = source->zero_point();
  quantization.dimension = source->quantized_dimension();
  if (quantization.scales != nullptr && !isPerChannel(type, quantization))
    HEARTH_TRY(checkScales(*quantization.scales, name));
  return quantization;
}

Status setPerTensor(const Quantization& quantization, const std::string& name, int64_t lowest,
                    int64_t highest, graph::Operand* operand) {
  if (quantization.scaleCount() == 0) {
    operand->scale = 1.0f;
    return {};
  }
  operand->scale = quantization.scales->Get(0);
  if (operand->scale == 0.0f)
    return fail(ErrorCode::kBadData, "The scale of the tensor \"{}\" is 0.", name);
  const int64_t zeroPoint = quantization.zeroPoint();
  if (zeroPoint < lowest || zeroPoint > highest)
    return fail(ErrorCode::kBadData, "The zero point {} of the tensor \"{}\" is outside [{}, {}].",
                zeroPoint, name, lowest, highest);
  operand->zeroPoint = static_cast<int32_t>(zeroPoint);
  return {};
}

Status setPerChannel(const Quantization& quantization, const std::string& name, ScaleLists& lists,
                     graph::Operand* operand) {
  const graph::Dimensions& dimensions = operand->dimensions;
  int64_t dimension = quantization.dimension;
  // In one-dimensional tensors some converters leave the dimension of the weights.
  if (dimensions.size() == 1) dimension = 0;
  if (dimension < 0 || dimension >= static_cast<int64_t>(dimensions.size()))
    return fail(ErrorCode::kBadData,
                "The tensor \"{}\" is quantised along dimension {}, its rank is {}.", name,
                dimension, dimensions.size());
  if (dimensions[dimension] != quantization.scaleCount())
    return fail(ErrorCode::kBadData, "The tensor \"{}\" has {} scales for {} channels.", name,
                quantization.scaleCount(), dimensions[dimension]);
  if (!quantization.isSymmetric())
    return fail(ErrorCode::kUnsupported,
                "The tensor \"{}\" has scales per channel and zero points other than 0, which is "
                "not supported.",
                name);
  operand->perChannel.channelDim = static_cast<uint32_t>(dimension);
  graph::ChannelScales& scales = operand->perChannel.scales;
  if constexpr (std::endian::native == std::endian::little)
    scales = lists.share({quantization.scales->data(), quantization.scaleCount()});
  else
    scales = std::vector<float>(quantization.scales->begin(), quantization.scales->end());
  if (scales.areWithin(std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::max()))
    return {};
  HEARTH_TRY(checkScales(scales, name));
  if (const auto zero = std::ranges::find(scales, 0.0f); zero != scales.end())
    return fail(ErrorCode::kBadData, "Scale {} of the tensor \"{}\" is 0.", zero - scales.begin(),
                name);
  return {};
}

Status refusePerChannel(const Quantization& quantization, schema::TensorType type,
                        const std::string& name) {
  if (quantization.scaleCount() <= 1) return {};
  return fail(ErrorCode::kUnsupported,
              "The tensor \"{}\" of type {} has {} scales, which is not supported.", name,
              tensorTypeName(type), quantization.scaleCount());
}

}  // namespace

Status setType(const schema::Tensor& tensor, schema::TensorType type, const std::string& name,
               ScaleLists& lists, graph::Operand* operand) {
  HEARTH_ASSIGN(const Quantization quantization, readQuantization(tensor, type, name));
  operand->scale = 0;
  operand->zeroPoint = 0;
  operand->perChannel = {};
  switch (type) {
    case schema::TensorType::FLOAT32:
      operand->type = OperandType::kTensorFloat32;
      return {};
    case schema::TensorType::FLOAT16:
      operand->type = OperandType::kTensorFloat16;
      return {};
    case schema::TensorType::FLOAT64:
      operand->type = OperandType::kTensorFloat64;
      return {};
    case schema::TensorType::COMPLEX64:
      operand->type = OperandType::kTensorComplex64;
      return {};
    case schema::TensorType::STRING:
      operand->type = OperandType::kTensorString;
      return {};
    // Only a bias has a scale, that of input times weights; the translators set it.
    case schema::TensorType::INT32:
      operand->type = OperandType::kTensorInt32;
      return {};
    case schema::TensorType::INT64:
      operand->type = OperandType::kTensorInt64;
      return {};
    case schema::TensorType::UINT64:
      operand->type = OperandType::kTensorUint64;
      return {};
    case schema::TensorType::UINT32:
      operand->type = OperandType::kTensorUint32;
      return {};
    case schema::TensorType::UINT16:
      operand->type = OperandType::kTensorUint16;
      return {};
    case schema::TensorType::BOOL:
      operand->type = OperandType::kTensorBool8;
      return {};
    case schema::TensorType::UINT8:
      operand->type = OperandType::kTensorQuant8Asymm;
      HEARTH_TRY(refusePerChannel(quantization, type, name));
      return setPerTensor(quantization, name, 0, 255, operand);
    case schema::TensorType::INT2:  // the value is widened
    case schema::TensorType::INT8:
      if (isPerChannel(type, quantization)) {
        operand->type = OperandType::kTensorQuant8SymmPerChannel;
        return setPerChannel(quantization, name, lists, operand);
      }
      operand->type = OperandType::kTensorQuant8AsymmSigned;
      return setPerTensor(quantization, name, -128, 127, operand);
    case schema::TensorType::INT16:
      operand->type = OperandType::kTensorInt16;
      HEARTH_TRY(refusePerChannel(quantization, type, name));
      if (quantization.scaleCount() == 0) return {};
      HEARTH_TRY(setPerTensor(quantization, name, std::numeric_limits<int16_t>::min(),
                              std::numeric_limits<int16_t>::max(), operand));
      if (operand->zeroPoint == 0) operand->type = OperandType::kTensorQuant16Symm;
      return {};
    case schema::TensorType::INT4:
      operand->type = OperandType::kTensorInt4;
      if (quantization.hasBlocks) return {};
      if (isPerChannel(type, quantization))
        return setPerChannel(quantization, name, lists, operand);
      if (!quantization.isSymmetric())
        return fail(ErrorCode::kUnsupported,
                    "The INT4 tensor \"{}\" has the zero point {}, only 0 is supported.", name,
                    quantization.zeroPoint());
      return setPerTensor(quantization, name, 0, 0, operand);
    default:
      return fail(ErrorCode::kUnsupported,
                  "The tensor \"{}\" has the type {}, which is not supported.", name,
                  tensorTypeName(type));
  }
}

Result<graph::Dimensions> readDimensions(const schema::Tensor& tensor, const std::string& name,
                                         ShapeSource source) {
  graph::Dimensions dimensions;
  const flatbuffers::Vector<int32_t>* shape = tensor.shape();
  if (shape == nullptr) return dimensions;
  if (shape->size() > kMaxRank)
    return fail(ErrorCode::kUnsupported, "The tensor \"{}\" has rank {}, at most {} is supported.",
                name, shape->size(), kMaxRank);
  const flatbuffers::Vector<int32_t>* signature =
      source == ShapeSource::kSignature ? tensor.shape_signature() : nullptr;
  if (signature != nullptr && signature->size() == 0) signature = nullptr;
  if (signature != nullptr && signature->size() != shape->size())
    return fail(ErrorCode::kBadData,
                "The tensor \"{}\" has rank {}, the signature of its shape has {}.", name,
                shape->size(), signature->size());
  for (uint32_t i = 0; i < shape->size(); ++i) {
    const bool isOpen = signature != nullptr && signature->Get(i) == -1;
    const int32_t dimension = isOpen ? 0 : shape->Get(i);
    if (dimension < -1)
      return fail(ErrorCode::kBadData, "Dimension {} of the tensor \"{}\" is {}.", i, name,
                  dimension);
    dimensions.push_back(dimension == -1 ? 0 : static_cast<uint32_t>(dimension));
  }
  return dimensions;
}

Result<graph::Operand> makeOperand(const schema::Tensor& tensor, const std::string& name,
                                   ShapeSource shape, ScaleLists& lists) {
  graph::Operand operand;
  HEARTH_ASSIGN(operand.dimensions, readDimensions(tensor, name, shape));
  operand.isRankZeroTensor = operand.dimensions.empty();
  HEARTH_TRY(setType(tensor, tensor.type(), name, lists, &operand));
  return operand;
}

}  // namespace hearth::tflite
