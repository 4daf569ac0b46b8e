// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/plan/widened_subgraph.h"

#include <algorithm>

namespace hearth::cpu {
namespace {

using graph::OperandType;
using graph::OperationType;

enum class Kind {
  kOther,     // stays in float16
  kComputes,  // results have to be rounded
  kChooses,   // slow in float16, and exact
  kMoves,     // exact, and as fast in float16
};

Kind kindOf(OperationType type) {
  switch (type) {
    case OperationType::kAdd:
    case OperationType::kAveragePool2d:
    case OperationType::kBatchMatmul:
    case OperationType::kConv2d:
    case OperationType::kCos:
    case OperationType::kDepthwiseConv2d:
    case OperationType::kDequantize:
    case OperationType::kDiv:
    case OperationType::kElu:
    case OperationType::kExp:
    case OperationType::kFullyConnected:
    case OperationType::kGelu:
    case OperationType::kGroupedConv2d:
    case OperationType::kGroupNorm:
    case OperationType::kHardSwish:
    case OperationType::kInstanceNormalization:
    case OperationType::kL2Normalization:
    case OperationType::kL2Pool2d:
    case OperationType::kLocalResponseNormalization:
    case OperationType::kLog:
    case OperationType::kLogistic:
    case OperationType::kLogSoftmax:
    case OperationType::kMean:
    case OperationType::kMul:
    case OperationType::kPow:
    case OperationType::kPrelu:
    case OperationType::kReduceProd:
    case OperationType::kReduceSum:
    case OperationType::kResizeBilinear:
    case OperationType::kRmsNorm:
    case OperationType::kRsqrt:
    case OperationType::kScaledDotProductAttention:
    case OperationType::kSin:
    case OperationType::kSoftmax:
    case OperationType::kSqrt:
    case OperationType::kSquaredDifference:
    case OperationType::kSub:
    case OperationType::kTanh:
    case OperationType::kTransposeConv2d:
      return Kind::kComputes;
    case OperationType::kAbs:
    case OperationType::kCeil:
    case OperationType::kEqual:
    case OperationType::kFloor:
    case OperationType::kGreater:
    case OperationType::kGreaterEqual:
    case OperationType::kLess:
    case OperationType::kLessEqual:
    case OperationType::kMaximum:
    case OperationType::kMaxPool2d:
    case OperationType::kMinimum:
    case OperationType::kNeg:
    case OperationType::kNotEqual:
    case OperationType::kRelu:
    case OperationType::kRelu0To1:
    case OperationType::kRelu1:
    case OperationType::kRelu6:
    case OperationType::kRound:
    case OperationType::kSign:
      return Kind::kChooses;
    case OperationType::kArgmax:
    case OperationType::kArgmin:
    case OperationType::kBatchToSpaceNd:
    case OperationType::kBroadcastTo:
    case OperationType::kChannelShuffle:
    case OperationType::kConcatenation:
    case OperationType::kDepthToSpace:
    case OperationType::kExpandDims:
    case OperationType::kGather:
    case OperationType::kGatherNd:
    case OperationType::kMirrorPad:
    case OperationType::kPack:
    case OperationType::kPad:
    case OperationType::kReduceMax:
    case OperationType::kReduceMin:
    case OperationType::kReshape:
    case OperationType::kResizeNearestNeighbor:
    case OperationType::kReverse:
    case OperationType::kSelect:
    case OperationType::kSelectV2:
    case OperationType::kSlice:
    case OperationType::kSpaceToBatchNd:
    case OperationType::kSpaceToDepth:
    case OperationType::kSplit:
    case OperationType::kSqueeze:
    case OperationType::kStridedSlice:
    case OperationType::kTile:
    case OperationType::kTranspose:
      return Kind::kMoves;
    default:
      return Kind::kOther;
  }
}

// Decides which operations are widened.
class Choice {
 public:
  explicit Choice(const graph::Subgraph& subgraph)
      : subgraph_(subgraph),
        isWidened_(subgraph.operations.size()),
        isOfConstants_(subgraph.operands.size()),
        isWritten_(subgraph.operands.size()),
        isRead_(subgraph.operands.size()) {}

  // By operation.
  std::vector<bool> operations() {
    for (uint32_t i = 0; i < subgraph_.operands.size(); ++i)
      isOfConstants_[i] = subgraph_.operands[i].isConstant() || !subgraph_.operands[i].hasValue();
    for (uint32_t o = 0; o < isWidened_.size(); ++o) {
      const graph::Operation& operation = subgraph_.operations[o];
      const bool isOfConstants =
          std::ranges::all_of(operation.inputs, [&](uint32_t i) { return isOfConstants_[i]; });
      if (isOfConstants)
        for (const uint32_t output : operation.outputs) isOfConstants_[output] = true;
      else if (mayBe(operation))
        choose(o);
    }
    // What only moves numbers to an operation that is widened is so itself.
    for (uint32_t o = static_cast<uint32_t>(isWidened_.size()); o-- > 0;) {
      const graph::Operation& operation = subgraph_.operations[o];
      const auto isReadWide = [&](uint32_t i) {
        return isHalf(i) && isRead_[i];
      };
      const bool isOfConstants =
          std::ranges::all_of(operation.inputs, [&](uint32_t i) { return isOfConstants_[i]; });
      if (!isWidened_[o] && !isOfConstants && kindOf(operation.type) == Kind::kMoves &&
          mayBe(operation) && std::ranges::any_of(operation.outputs, isReadWide))
        widen(o);
    }
    return isWidened_;
  }

 private:
  bool isHalf(uint32_t operand) const {
    return subgraph_.operands[operand].type == OperandType::kTensorFloat16;
  }

  // Whether the operation is one of float16 tensors that may as well be of float32 ones.
  bool mayBe(const graph::Operation& operation) const {
    if (kindOf(operation.type) == Kind::kOther) return false;
    bool hasHalves = false;
    for (const auto* const list : {&operation.inputs, &operation.outputs})
      for (const uint32_t i : *list) {
        hasHalves |= isHalf(i);
        if (subgraph_.operands[i].type == OperandType::kTensorFloat32) return false;
      }
    return hasHalves;
  }

  void choose(uint32_t index) {
    const graph::Operation& operation = subgraph_.operations[index];
    const bool isFed = std::ranges::any_of(operation.inputs,
                                           [&](uint32_t i) { return isHalf(i) && isWritten_[i]; });
    if (isFed || kindOf(operation.type) != Kind::kMoves) widen(index);
  }

  void widen(uint32_t index) {
    isWidened_[index] = true;
    for (const uint32_t i : subgraph_.operations[index].inputs) isRead_[i] = true;
    for (const uint32_t i : subgraph_.operations[index].outputs) isWritten_[i] = true;
  }

  const graph::Subgraph& subgraph_;
  std::vector<bool> isWidened_;
  std::vector<bool> isOfConstants_;  // by operand: whether it depends on nothing else
  std::vector<bool> isWritten_;      // by operand: by an operation that is widened
  std::vector<bool> isRead_;         // by operand: by an operation that is widened
};

bool hasHalves(const graph::Subgraph& subgraph) {
  return std::ranges::any_of(subgraph.operands, [](const graph::Operand& operand) {
    return operand.type == OperandType::kTensorFloat16;
  });
}

}  // namespace

std::shared_ptr<const WidenedSubgraph> WidenedSubgraph::of(const graph::Subgraph& subgraph) {
  if (!hasHalves(subgraph)) return nullptr;
  const std::vector<bool> isWidened = Choice(subgraph).operations();
  if (std::ranges::find(isWidened, true) == isWidened.end()) return nullptr;
  return std::shared_ptr<const WidenedSubgraph>(new WidenedSubgraph(subgraph, isWidened));
}

WidenedSubgraph::WidenedSubgraph(const graph::Subgraph& subgraph,
                                 const std::vector<bool>& isWidened)
    : subgraph_(subgraph),
      ownCount_(static_cast<uint32_t>(subgraph.operands.size())),
      wide_(ownCount_, UINT32_MAX) {
  const auto addWide = [&](uint32_t own) {
    const auto wide = static_cast<uint32_t>(subgraph_.operands.size());
    graph::Operand operand = subgraph.operands[own];
    operand.type = OperandType::kTensorFloat32;
    operand.lifetime = graph::Lifetime::kTemporary;
    operand.location = {};
    subgraph_.operands.push_back(std::move(operand));
    narrow_.push_back(own);
    conversions_.push_back({OperationType::kCast, {own}, {wide}, {}});
    return wide;
  };
  for (uint32_t o = 0; o < subgraph_.operations.size(); ++o) {
    if (!isWidened[o]) continue;
    graph::Operation& operation = subgraph_.operations[o];
    for (auto* const list : {&operation.inputs, &operation.outputs})
      for (uint32_t& i : *list) {
        const graph::Operand& own = subgraph.operands[i];
        if (own.type != OperandType::kTensorFloat16 || !own.hasValue()) continue;
        if (wide_[i] == UINT32_MAX) wide_[i] = addWide(i);
        i = wide_[i];
      }
  }
}

bool WidenedSubgraph::isExact(OperationType type) {
  const Kind kind = kindOf(type);
  return kind == Kind::kChooses || kind == Kind::kMoves;
}

bool WidenedSubgraph::isClamp(OperationType type) {
  return type == OperationType::kRelu || type == OperationType::kRelu1 ||
         type == OperationType::kRelu6;
}

}  // namespace hearth::cpu
