// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/lowering/lowering.h"

#include <algorithm>
#include <utility>

#include "drivers/vulkan/lowering/copies.h"
#include "ops/activation.h"

namespace hearth::vulkan {
namespace {

using ops::OperationType;

// The invocations of a work group of shaders that compute rows of elements (types.glsl).
constexpr uint64_t kRowGroup = 64;

}  // namespace

TensorId LoweringContext::addConstant(uint64_t bytes,
                                      std::function<Result<std::vector<uint8_t>>()> make) {
  PlannedTensor tensor;
  tensor.place = PlannedTensor::Place::kConstants;
  tensor.bytes = bytes;
  tensor.root = static_cast<TensorId>(plan_->tensors.size());
  tensor.make = std::move(make);
  plan_->tensors.push_back(std::move(tensor));
  return plan_->tensors.back().root;
}

TensorId LoweringContext::addTemporary(uint64_t bytes) {
  PlannedTensor tensor;
  tensor.bytes = bytes;
  tensor.root = static_cast<TensorId>(plan_->tensors.size());
  tensor.name = operation_.describe();
  plan_->tensors.push_back(std::move(tensor));
  return plan_->tensors.back().root;
}

Status LoweringContext::add(Dispatch dispatch) {
  for (size_t i = 0; i < dispatch.groups.size(); ++i)
    if (dispatch.groups[i] > facts_.maxGroups[i])
      return fail(ErrorCode::kUnsupported,
                  "{} needs {} work groups along one side, the GPU has {}.", operation_.describe(),
                  dispatch.groups[i], facts_.maxGroups[i]);
  plan_->dispatches.push_back(std::move(dispatch));
  return {};
}

Status LoweringContext::addRow(Dispatch dispatch, uint64_t count) {
  const uint64_t groups = (count + kRowGroup - 1) / kRowGroup;
  const uint64_t across = std::min<uint64_t>(groups, facts_.maxGroups[0]);
  dispatch.groups = {static_cast<uint32_t>(across),
                     static_cast<uint32_t>((groups + across - 1) / across), 1};
  return add(std::move(dispatch));
}

Status LoweringContext::addRows(Dispatch dispatch, uint32_t rows) {
  const uint32_t across = std::min(rows, facts_.maxGroups[0]);
  dispatch.groups = {across, (rows + across - 1) / across, 1};
  return add(std::move(dispatch));
}

Result<TensorId> LoweringContext::fault() {
  if (plan_->fault != kNoTensor) return plan_->fault;
  plan_->fault = addTemporary(sizeof(uint32_t));
  const TensorId zero = addConstant(sizeof(uint32_t), []() -> Result<std::vector<uint8_t>> {
    return std::vector<uint8_t>(sizeof(uint32_t), 0);
  });
  HEARTH_TRY(addCopy(*this, sizeof(uint32_t), {zero, plan_->fault, {}}));
  return plan_->fault;
}

void LoweringContext::alias() {
  plan_->tensors[outputs_[0]].root = inputs_[0];
}

Lowering findLowering(OperationType type) {
  switch (type) {
    case OperationType::kConv2d:
    case OperationType::kGroupedConv2d:
      return lowerConvolution;
    case OperationType::kDepthwiseConv2d:
      return lowerDepthwiseConvolution;
    case OperationType::kFullyConnected:
      return lowerFullyConnected;
    case OperationType::kTransposeConv2d:
      return lowerTransposedConvolution;
    case OperationType::kEqual:
    case OperationType::kNotEqual:
    case OperationType::kLess:
    case OperationType::kLessEqual:
    case OperationType::kGreater:
    case OperationType::kGreaterEqual:
      return lowerComparison;
    case OperationType::kLogicalAnd:
    case OperationType::kLogicalOr:
    case OperationType::kLogicalNot:
      return lowerLogic;
    case OperationType::kArgmax:
    case OperationType::kArgmin:
    case OperationType::kArgmax64:
    case OperationType::kArgmin64:
      return lowerArgExtreme;
    case OperationType::kCumsum:
      return lowerCumsum;
    case OperationType::kSelect:
    case OperationType::kSelectV2:
      return lowerSelect;
    case OperationType::kQuantize:
      return lowerQuantize;
    case OperationType::kDequantize:
      return lowerDequantize;
    case OperationType::kResizeBilinear:
    case OperationType::kResizeNearestNeighbor:
      return lowerResize;
    case OperationType::kAdd:
    case OperationType::kSub:
    case OperationType::kMul:
    case OperationType::kDiv:
    case OperationType::kMaximum:
    case OperationType::kMinimum:
    case OperationType::kSquaredDifference:
    case OperationType::kPrelu:
    case OperationType::kPow:
      return lowerBinary;
    case OperationType::kRelu:
    case OperationType::kRelu1:
    case OperationType::kRelu6:
    case OperationType::kRelu0To1:
    case OperationType::kLogistic:
    case OperationType::kTanh:
    case OperationType::kHardSwish:
    case OperationType::kElu:
    case OperationType::kExp:
    case OperationType::kLog:
    case OperationType::kSqrt:
    case OperationType::kRsqrt:
    case OperationType::kAbs:
    case OperationType::kNeg:
    case OperationType::kFloor:
    case OperationType::kSin:
    case OperationType::kCos:
    case OperationType::kCeil:
    case OperationType::kRound:
    case OperationType::kSign:
    case OperationType::kGelu:
      return lowerUnary;
    case OperationType::kConcatenation:
      return lowerConcatenation;
    case OperationType::kPack:
      return lowerPack;
    case OperationType::kTile:
      return lowerTile;
    case OperationType::kBroadcastTo:
      return lowerBroadcast;
    case OperationType::kSpaceToBatchNd:
    case OperationType::kBatchToSpaceNd:
      return lowerSpaceToBatch;
    case OperationType::kGather:
      return lowerGather;
    case OperationType::kEmbeddingLookup:
      return lowerEmbeddingLookup;
    case OperationType::kDynamicUpdateSlice:
      return lowerDynamicUpdateSlice;
    case OperationType::kBatchMatmul:
      return lowerBatchMatmul;
    case OperationType::kScaledDotProductAttention:
      return lowerAttention;
    case OperationType::kL2Normalization:
      return lowerL2Normalization;
    case OperationType::kRmsNorm:
      return lowerRmsNorm;
    case OperationType::kGroupNorm:
      return lowerGroupNorm;
    case OperationType::kInstanceNormalization:
      return lowerInstanceNormalization;
    case OperationType::kLocalResponseNormalization:
      return lowerLocalResponseNormalization;
    case OperationType::kChannelShuffle:
      return lowerChannelShuffle;
    case OperationType::kReverse:
      return lowerReverse;
    case OperationType::kCast:
      return lowerCast;
    case OperationType::kPad:
    case OperationType::kPadV2:
      return lowerPad;
    case OperationType::kReshape:
    case OperationType::kSqueeze:
    case OperationType::kExpandDims:
      return lowerReshape;
    case OperationType::kSlice:
    case OperationType::kStridedSlice:
      return lowerSlice;
    case OperationType::kSpaceToDepth:
    case OperationType::kDepthToSpace:
      return lowerSpaceToDepth;
    case OperationType::kSplit:
      return lowerSplit;
    case OperationType::kTranspose:
      return lowerTranspose;
    case OperationType::kMean:
    case OperationType::kReduceSum:
    case OperationType::kReduceMax:
    case OperationType::kReduceMin:
    case OperationType::kReduceProd:
    case OperationType::kReduceAll:
    case OperationType::kReduceAny:
      return lowerReduction;
    case OperationType::kAveragePool2d:
    case OperationType::kMaxPool2d:
    case OperationType::kL2Pool2d:
      return lowerPool;
    case OperationType::kSoftmax:
    case OperationType::kLogSoftmax:
      return lowerSoftmax;
    default:
      return nullptr;
  }
}

Result<std::string> LoweringContext::numberSuffix(ops::OperandType type) const {
  using graph::OperandType;
  const bool isByte =
      type == OperandType::kTensorQuant8Asymm || type == OperandType::kTensorQuant8AsymmSigned;
  if (type == OperandType::kTensorFloat32) return "f32";
  if (type == OperandType::kTensorFloat16 && facts_.has16BitStorage) return "f16";
  if (isByte && facts_.has8BitStorage) return type == OperandType::kTensorQuant8Asymm ? "u8" : "i8";
  return fail(ErrorCode::kUnsupported, "The GPU driver has no {} of {}.",
              graph::nameOf(operation_.operation->type), graph::nameOf(type));
}

Result<std::string> LoweringContext::bitsSuffix(size_t elementBytes) const {
  if (elementBytes == 1 && facts_.has8BitStorage) return "bits8";
  if (elementBytes == 2 && facts_.has16BitStorage) return "bits16";
  if (elementBytes == 4) return "bits32";
  return fail(ErrorCode::kUnsupported, "The GPU driver has no {} of elements of {} bytes.",
              graph::nameOf(operation_.operation->type), elementBytes);
}

void appendStrides(const ops::ImageLayout& layout, std::vector<uint32_t>* parameters) {
  // PlanBuilder refuses tensors whose elements 32 bits cannot count.
  for (const size_t elements :
       {layout.batchStride, layout.rowStride, layout.columnStride, layout.channelStride})
    parameters->push_back(static_cast<uint32_t>(elements));
}

std::array<uint32_t, 2> activationLimits(ops::FusedActivation activation,
                                         const graph::Operand& output) {
  if (graph::isQuantized(output.type)) {
    const ops::QuantizedRange range = ops::quantizedActivationRange(activation, output);
    return {bitsOf(range.lowest), bitsOf(range.highest)};
  }
  const ops::ActivationRange range = ops::activationRange(activation);
  return {bitsOf(range.lowest), bitsOf(range.highest)};
}

}  // namespace hearth::vulkan
