// SPDX-License-Identifier: Apache-2.0
#include "ops/followed_shapes.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "ops/quantized_sequence_lstm.h"

namespace hearth::ops {
namespace {

// Larger constants are not repeated for each part.
constexpr uint64_t kMostRepeatedBytes = uint64_t{1} << 20;

uint64_t bit(size_t dimension) {
  return uint64_t{1} << dimension;
}

bool holdsParts(const FollowedTensor& tensor, size_t dimension) {
  return (tensor.parts & bit(dimension)) != 0;
}

std::string nameOf(const OperationContext& context, size_t input) {
  const std::string& name = context.inputs[input].operand->name;
  return name.empty() ? base::formatText("{}", input) : base::formatText("\"{}\"", name);
}

std::unexpected<Error> refuse(const OperationContext& context,
                              std::span<const FollowedTensor> inputs, std::string_view why) {
  return fail(ErrorCode::kUnsupported, "{} cannot follow: {}, {}.", context.describe(),
              describeChange(context, inputs), why);
}

std::unexpected<Error> refuseMixing(const OperationContext& context,
                                    std::span<const FollowedTensor> inputs) {
  return refuse(context, inputs,
                "and the operation may mix what lies along the dimension that was 1");
}

// --- RESHAPE --------------------------------------------------------------------------------

// The products of all dimensions before each one, and of all of them. Nothing if that overflows.
std::optional<std::vector<uint64_t>> productsBefore(const Dimensions& dimensions) {
  std::vector<uint64_t> products = {1};
  for (const uint32_t size : dimensions) {
    uint64_t product = 0;
    if (size == 0 || __builtin_mul_overflow(products.back(), uint64_t{size}, &product))
      return std::nullopt;
    products.push_back(product);
  }
  return products;
}

bool scale(uint32_t* size, uint32_t before, uint32_t now) {
  uint64_t scaled = 0;
  if (*size % before != 0 ||
      __builtin_mul_overflow(uint64_t{*size / before}, uint64_t{now}, &scaled) ||
      scaled > UINT32_MAX)
    return false;
  *size = static_cast<uint32_t>(scaled);
  return true;
}

// Finds the place of each changed dimension of the input in the output's declared shape.
class Reshaping {
 public:
  Reshaping(const FollowedTensor& input, const Dimensions& output)
      : input_(input), output_{output, output, true} {}

  // The output's present shape, if there is but one reading.
  std::optional<FollowedTensor> run() {
    const auto from = productsBefore(input_.before);
    const auto to = productsBefore(output_.before);
    if (!from || !to || from->back() != to->back()) return std::nullopt;
    from_ = *from;
    to_ = *to;
    for (size_t i = 0; i < input_.before.size(); ++i)
      if (input_.before[i] != input_.now[i] && !place(i)) return std::nullopt;
    const auto now = productsBefore(input_.now);
    const auto made = productsBefore(output_.now);
    if (!now || !made || now->back() != made->back()) return std::nullopt;
    return std::move(output_);
  }

 private:
  bool place(size_t i) {
    if (i == 0 && input_.isJoined) return placeJoined();
    return input_.before[i] == 1 ? placeGrown(i) : placeLarge(i);
  }

  // A dimension that holds parts and others.
  bool placeJoined() {
    const uint32_t size = input_.before[0];
    if (output_.before.empty()) return false;
    const bool isOwn = output_.before[0] == input_.partsBefore;
    if (isOwn && output_.before[0] != size && std::ranges::contains(to_, uint64_t{size})) {
      output_.now[0] = input_.partsNow;
      output_.parts |= bit(0);
      return true;
    }
    if (!scale(&output_.now[0], size, input_.now[0])) return false;
    join(input_.partsBefore, input_.partsNow);
    return true;
  }

  // A dimension that was 1. Several of them in a row keep their order.
  bool placeGrown(size_t i) {
    const std::vector<size_t> ones = onesAt(input_.before, from_, from_[i]);
    const std::vector<size_t> places = onesAt(output_.before, to_, from_[i]);
    const auto order = static_cast<size_t>(std::ranges::find(ones, i) - ones.begin());
    std::optional<size_t> found;
    if (ones.size() == places.size()) found = places[order];
    // A batch comes first.
    if (!found && i == 0 && !places.empty()) found = places[0];
    if (found) {
      output_.now[*found] = input_.now[i];
      if (holdsParts(input_, i)) output_.parts |= bit(*found);
      return true;
    }
    if (i != 0 || !holdsParts(input_, 0) || output_.before.empty() ||
        !scale(&output_.now[0], 1, input_.now[0]))
      return false;
    join(1, input_.now[0]);
    return true;
  }

  // A larger dimension is one of the output's, or a factor of one.
  bool placeLarge(size_t i) {
    const uint32_t size = input_.before[i];
    const uint64_t end = from_[i + 1];
    for (size_t k = 0; k < output_.before.size(); ++k) {
      if (to_[k] > from_[i] || to_[k + 1] < end || from_[i] % to_[k] != 0 || to_[k + 1] % end != 0)
        continue;
      if (output_.before[k] == 1 || !scale(&output_.now[k], size, input_.now[i])) return false;
      if (!holdsParts(input_, i)) return true;
      if (output_.before[k] == size) {
        output_.parts |= bit(k);
        return true;
      }
      return false;
    }
    return false;
  }

  void join(uint32_t before, uint32_t now) {
    output_.parts |= bit(0);
    output_.isJoined = true;
    output_.partsBefore = before;
    output_.partsNow = now;
  }

  static std::vector<size_t> onesAt(const Dimensions& dimensions,
                                    const std::vector<uint64_t>& products, uint64_t product) {
    std::vector<size_t> places;
    for (size_t i = 0; i < dimensions.size(); ++i)
      if (dimensions[i] == 1 && products[i] == product) places.push_back(i);
    return places;
  }

  const FollowedTensor& input_;
  FollowedTensor output_;
  std::vector<uint64_t> from_;
  std::vector<uint64_t> to_;
};

// --- Constants ------------------------------------------------------------------------------

// A list of integers in place of input `index`.
FollowedConstant integersAs(const OperationContext& context, size_t index,
                            const std::vector<int64_t>& values) {
  FollowedConstant made;
  made.input = index;
  made.operand = *context.inputs[index].operand;
  const bool isWide = made.operand.type == OperandType::kTensorInt64;
  const size_t bytes = values.size() * (isWide ? sizeof(int64_t) : sizeof(int32_t));
  made.value.resize((bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  auto* const first = reinterpret_cast<uint8_t*>(made.value.data());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto narrow = static_cast<int32_t>(values[i]);
    if (isWide)
      std::memcpy(first + i * sizeof(int64_t), &values[i], sizeof(int64_t));
    else
      std::memcpy(first + i * sizeof(int32_t), &narrow, sizeof(int32_t));
  }
  return made;
}

using Constants = std::vector<FollowedConstant>;

Constants replaced(const OperationContext& context, size_t index,
                   const std::vector<int64_t>& before, const std::vector<int64_t>& now) {
  Constants made;
  if (now != before) made.push_back(integersAs(context, index, now));
  return made;
}

Result<Constants> followReshape(const OperationContext& context,
                                std::span<const FollowedTensor> inputs,
                                std::span<const FollowedTensor> outputs) {
  HEARTH_ASSIGN(const std::vector<int64_t> shape, context.intVector(1));
  const auto target = Reshaping(inputs[0], outputs[0].before).run();
  if (!target)
    return refuse(
        context, inputs,
        base::formatText("and its output \"{}\" is {} by a constant, in which there is no "
                         "certain place for the change",
                         context.outputs[0].operand->name,
                         graph::describeDimensions(outputs[0].before)));
  return replaced(context, 1, shape, {target->now.begin(), target->now.end()});
}

Result<Constants> followBroadcastTo(const OperationContext& context,
                                    std::span<const FollowedTensor> inputs) {
  HEARTH_ASSIGN(const std::vector<int64_t> shape, context.intVector(1));
  std::vector<int64_t> now = shape;
  const FollowedTensor& input = inputs[0];
  if (shape.size() < input.before.size()) return Constants();
  const size_t first = shape.size() - input.before.size();
  for (size_t i = 0; i < input.before.size(); ++i) {
    if (input.before[i] == input.now[i]) continue;
    if (shape[first + i] != input.before[i])
      return refuse(context, inputs, "which it repeats along the dimension that changes");
    now[first + i] = input.now[i];
  }
  return replaced(context, 1, shape, now);
}

Result<Constants> followSlice(const OperationContext& context,
                              std::span<const FollowedTensor> inputs) {
  HEARTH_ASSIGN(const std::vector<int64_t> begins, context.intVector(1));
  HEARTH_ASSIGN(const std::vector<int64_t> sizes, context.intVector(2));
  const FollowedTensor& input = inputs[0];
  if (begins.size() != input.before.size() || sizes.size() != begins.size()) return Constants();
  std::vector<int64_t> now = sizes;
  for (size_t i = 0; i < begins.size(); ++i) {
    if (input.before[i] == input.now[i] || sizes[i] == -1) continue;
    // A file's numbers may have 64 bits, and their sum may not fit.
    const int64_t size = input.before[i];
    if (begins[i] == 0 && sizes[i] == size)
      now[i] = input.now[i];
    else if (begins[i] >= 0 && begins[i] <= size && sizes[i] == size - begins[i])
      return refuse(context, inputs,
                    base::formatText("of whose dimension {} it takes {} from {} on, which were all "
                                     "up to the end",
                                     i, sizes[i], begins[i]));
  }
  return replaced(context, 2, sizes, now);
}

Result<Constants> followStridedSlice(const OperationContext& context,
                                     std::span<const FollowedTensor> inputs) {
  HEARTH_ASSIGN(const std::vector<int64_t> begins, context.intVector(1));
  HEARTH_ASSIGN(const std::vector<int64_t> ends, context.intVector(2));
  HEARTH_ASSIGN(const std::vector<int64_t> strides, context.intVector(3));
  HEARTH_ASSIGN(const int32_t beginMask, context.scalar<int32_t>(4));
  HEARTH_ASSIGN(const int32_t endMask, context.scalar<int32_t>(5));
  HEARTH_ASSIGN(const int32_t shrinkMask, context.scalar<int32_t>(6));
  const FollowedTensor& input = inputs[0];
  const size_t count = std::min({begins.size(), ends.size(), strides.size(), input.before.size()});
  std::vector<int64_t> now = ends;
  for (size_t i = 0; i < count && i < 31; ++i) {
    const auto isSet = [i](int32_t mask) {
      return ((mask >> i) & 1) != 0;
    };
    if (input.before[i] == input.now[i] || isSet(endMask) || isSet(shrinkMask) || strides[i] < 0 ||
        ends[i] != input.before[i])
      continue;
    if (begins[i] != 0 && !isSet(beginMask))
      return refuse(context, inputs,
                    base::formatText("of whose dimension {} it takes what lies from {} to {}, "
                                     "which was the end",
                                     i, begins[i], ends[i]));
    now[i] = input.now[i];
  }
  return replaced(context, 2, ends, now);
}

Result<Constants> followTransposeConv(const OperationContext& context,
                                      std::span<const FollowedTensor> inputs) {
  // Inputs of the form with an output shape, behind data, filter and bias.
  constexpr size_t kShape = 3, kStrideWidth = 5, kStrideHeight = 6, kLayout = 8;
  if (context.inputs.size() > kLayout + 1) return Constants();
  HEARTH_ASSIGN(const std::vector<int64_t> shape, context.intVector(kShape));
  HEARTH_ASSIGN(const int32_t strideWidth, context.scalar<int32_t>(kStrideWidth));
  HEARTH_ASSIGN(const int32_t strideHeight, context.scalar<int32_t>(kStrideHeight));
  HEARTH_ASSIGN(const bool isNchw, context.scalar<bool>(kLayout, false));
  const FollowedTensor& input = inputs[0];
  const Dimensions& filter = context.inputs[1].dimensions;
  if (input.before.size() != 4 || shape.size() != 4 || filter.size() != 4) return Constants();
  std::vector<int64_t> now = shape;
  now[0] = input.now[0];
  const size_t height = isNchw ? 2 : 1;
  for (size_t i = 0; i < 2; ++i) {
    const size_t k = height + i;
    const int64_t stride = i == 0 ? strideHeight : strideWidth;
    const int64_t before = input.before[k];
    const int64_t after = input.now[k];
    if (before == after) continue;
    const int64_t whole = (before - 1) * stride + filter[1 + i];
    if (shape[k] == before * stride)
      now[k] = after * stride;
    else if (shape[k] == whole)
      now[k] = whole + (after - before) * stride;
    else
      return refuse(context, inputs,
                    base::formatText("and its output is {} by a constant that is no multiple",
                                     graph::describeDimensions({shape.begin(), shape.end()})));
  }
  return replaced(context, kShape, shape, now);
}

// Constant places along a dimension that changes may be any.
Status refusePlaces(const OperationContext& context, std::span<const FollowedTensor> inputs) {
  HEARTH_ASSIGN(int32_t axis, context.scalar<int32_t>(1));
  const FollowedTensor& table = inputs[0];
  if (axis < 0) axis += static_cast<int32_t>(table.before.size());
  const auto place = static_cast<size_t>(axis);
  if (place < table.before.size() && table.before[place] != table.now[place])
    return refuse(context, inputs, "and it gathers constant places of the dimension that changes");
  return {};
}

// A constant with one part is joined with each part of the other inputs, like the class token of a
// vision transformer.
Result<Constants> followConcatenation(const OperationContext& context,
                                      std::span<const FollowedTensor> inputs) {
  Constants made;
  const size_t count = context.inputs.size() - 1;
  for (size_t i = 0; i < count; ++i) {
    const Tensor& input = context.inputs[i];
    if (input.data == nullptr || inputs[i].isChanged() || input.dimensions.empty() ||
        input.dimensions[0] != 1)
      continue;
    const auto other = std::ranges::find_if(inputs.first(count), [](const FollowedTensor& each) {
      return each.isChanged() && holdsParts(each, 0) && each.before[0] == 1;
    });
    if (other == inputs.begin() + static_cast<ptrdiff_t>(count)) break;
    HEARTH_ASSIGN(const int32_t axis, context.scalar<int32_t>(count));
    if (axis == 0 || axis == -static_cast<int32_t>(input.rank())) break;
    FollowedConstant constant;
    constant.input = i;
    constant.operand = *input.operand;
    constant.operand.dimensions[0] = other->now[0];
    const uint64_t bytes = input.elementCount() * graph::elementSize(*input.operand);
    HEARTH_ASSIGN(const uint64_t all, graph::byteSize(constant.operand));
    if (bytes == 0 || all > kMostRepeatedBytes) continue;
    constant.value.resize((all + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    auto* const first = reinterpret_cast<uint8_t*>(constant.value.data());
    for (uint64_t part = 0; part < other->now[0]; ++part)
      std::memcpy(first + part * bytes, input.data, bytes);
    made.push_back(std::move(constant));
  }
  return made;
}

// --- Where parts lie in outputs ----------------------------------------------------------------

class PartsFollower {
 public:
  PartsFollower(const OperationContext& context, std::span<const FollowedTensor> inputs,
                std::span<FollowedTensor> outputs)
      : context_(context), inputs_(inputs), outputs_(outputs) {}

  Status run() {
    switch (context_.operation->type) {
      case OperationType::kDequantize:
      case OperationType::kQuantize:
      case OperationType::kCast:
      case OperationType::kFloor:
      case OperationType::kCeil:
      case OperationType::kRound:
      case OperationType::kSign:
      case OperationType::kLogistic:
      case OperationType::kRelu:
      case OperationType::kRelu1:
      case OperationType::kRelu6:
      case OperationType::kRelu0To1:
      case OperationType::kTanh:
      case OperationType::kAbs:
      case OperationType::kExp:
      case OperationType::kLog:
      case OperationType::kNeg:
      case OperationType::kRsqrt:
      case OperationType::kSqrt:
      case OperationType::kSin:
      case OperationType::kCos:
      case OperationType::kElu:
      case OperationType::kHardSwish:
      case OperationType::kGelu:
      case OperationType::kLogicalNot:
      case OperationType::kZerosLike:
      case OperationType::kBucketize:
      case OperationType::kReal:
      case OperationType::kImag:
      case OperationType::kComplexAbs:
      case OperationType::kPad:
      case OperationType::kPadV2:
      case OperationType::kMirrorPad:
      case OperationType::kTile:
      case OperationType::kSlice:
        return keep();
      case OperationType::kAdd:
      case OperationType::kMul:
      case OperationType::kSub:
      case OperationType::kDiv:
      case OperationType::kPow:
      case OperationType::kMaximum:
      case OperationType::kMinimum:
      case OperationType::kEqual:
      case OperationType::kNotEqual:
      case OperationType::kGreater:
      case OperationType::kGreaterEqual:
      case OperationType::kLess:
      case OperationType::kLessEqual:
      case OperationType::kLogicalAnd:
      case OperationType::kLogicalOr:
      case OperationType::kPrelu:
      case OperationType::kSelect:
      case OperationType::kSelectV2:
      case OperationType::kSquaredDifference:
      case OperationType::kFloorDiv:
      case OperationType::kFloorMod:
      case OperationType::kTruncatedDiv:
      case OperationType::kAtan2:
      case OperationType::kBitwiseXor:
      case OperationType::kRightShift:
      case OperationType::kBroadcastTo:
        return broadcast(context_.inputs.size(), 0);
      case OperationType::kConv2d:
      case OperationType::kDepthwiseConv2d:
      case OperationType::kGroupedConv2d:
      case OperationType::kTransposeConv2d:
      case OperationType::kConv3d:
      case OperationType::kConv3dTranspose:
      case OperationType::kAveragePool2d:
      case OperationType::kL2Pool2d:
      case OperationType::kMaxPool2d:
      case OperationType::kLocalResponseNormalization:
      case OperationType::kInstanceNormalization:
      case OperationType::kResizeBilinear:
      case OperationType::kResizeNearestNeighbor:
      case OperationType::kSpaceToDepth:
      case OperationType::kDepthToSpace:
      case OperationType::kSpaceToBatchNd:
      case OperationType::kBatchToSpaceNd:
        return keepFirst();
      case OperationType::kSoftmax:
      case OperationType::kLogSoftmax:
        return keepBut(2, -1);
      case OperationType::kL2Normalization:
        return keepBut(1, -1);
      case OperationType::kRmsNorm:
        return keepBut(context_.inputs.size(), -1);
      case OperationType::kCumsum:
      case OperationType::kChannelShuffle:
        return keepBut(context_.operation->type == OperationType::kCumsum ? 1 : 2, -1);
      case OperationType::kTopkV2:
      case OperationType::kSplit:
        return keepBut(context_.operation->type == OperationType::kSplit ? 1 : 2, -1);
      case OperationType::kReverse: {
        HEARTH_ASSIGN(const std::vector<int64_t> axes, context_.intVector(1));
        return axes.size() == 1 ? keepOff(axes[0]) : refuseMixing(context_, inputs_);
      }
      case OperationType::kArgmax:
      case OperationType::kArgmin:
      case OperationType::kArgmax64:
      case OperationType::kArgmin64: {
        HEARTH_ASSIGN(const int32_t axis, context_.scalar<int32_t>(1));
        return reduce({axis});
      }
      case OperationType::kMean:
      case OperationType::kReduceAll:
      case OperationType::kReduceAny:
      case OperationType::kReduceMax:
      case OperationType::kReduceMin:
      case OperationType::kReduceProd:
      case OperationType::kReduceSum: {
        HEARTH_ASSIGN(const std::vector<int64_t> axes, context_.intVector(1));
        return reduce(axes);
      }
      case OperationType::kReshape:
        return reshape();
      case OperationType::kSqueeze:
      case OperationType::kExpandDims:
      case OperationType::kStridedSlice:
        return moveInOrder();
      case OperationType::kTranspose:
        return transpose();
      case OperationType::kConcatenation:
        return concatenate();
      case OperationType::kPack:
        return pack();
      case OperationType::kFullyConnected:
        return fullyConnected();
      case OperationType::kBatchMatmul:
        return multiply();
      case OperationType::kGather:
        return gather();
      case OperationType::kEmbeddingLookup:
        return keepFirst();
      case OperationType::kRfft2d:
        return keepLeading(2);
      case OperationType::kLstm:
      case OperationType::kRnn:
      case OperationType::kSvdf:
      case OperationType::kQuantizedLstm:
      case OperationType::kQuantized16bitLstm:
      case OperationType::kUnidirectionalSequenceLstm:
      case OperationType::kUnidirectionalSequenceRnn:
      case OperationType::kBidirectionalSequenceLstm:
      case OperationType::kBidirectionalSequenceRnn:
      case OperationType::kQuantizedSequenceLstm:
        return recur();
      case OperationType::kShape:
      case OperationType::kRank:
        return {};
      default:
        return refuseMixing(context_, inputs_);
    }
  }

  // Sizes of tensors that operations make of shapes alone, such as a state of zeros.
  void fill() {
    for (FollowedTensor& output : outputs_)
      for (size_t i = 0; output.isKnown && i < output.now.size(); ++i)
        if (output.before[i] == 1 && output.now[i] != 1) output.parts |= bit(i);
  }

 private:
  std::unexpected<Error> refused() const { return refuseMixing(context_, inputs_); }

  static void copyJoint(const FollowedTensor& from, FollowedTensor* to) {
    if (!from.isJoined) return;
    to->isJoined = true;
    to->partsBefore = from.partsBefore;
    to->partsNow = from.partsNow;
  }

  // Output dimension `to` holds the parts of dimension `from` of an input, all of them and in
  // order.
  bool carry(const FollowedTensor& input, size_t from, FollowedTensor* output, size_t to) const {
    if (to >= output->now.size() || output->now[to] != input.now[from] ||
        output->before[to] != input.before[from])
      return false;
    if (!holdsParts(input, from)) return true;
    output->parts |= bit(to);
    if (from == 0 && input.isJoined) {
      if (to != 0) return false;
      copyJoint(input, output);
    }
    return true;
  }

  bool isOnlyFirstInput() const {
    for (size_t i = 1; i < inputs_.size(); ++i)
      if (inputs_[i].parts != 0) return false;
    return true;
  }

  // All dimensions stay, and what holds parts keeps its size.
  Status keep() {
    if (!isOnlyFirstInput()) return refused();
    const FollowedTensor& input = inputs_[0];
    for (FollowedTensor& output : outputs_) {
      if (!output.isKnown) continue;
      for (size_t i = 0; i < input.now.size(); ++i)
        if (holdsParts(input, i) && !carry(input, i, &output, i)) return refused();
    }
    return {};
  }

  // The same where dimension `axis` is mixed.
  Status keepOff(int64_t axis) {
    const auto rank = static_cast<int64_t>(inputs_[0].now.size());
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || holdsParts(inputs_[0], static_cast<size_t>(axis)))
      return refused();
    return keep();
  }

  Status keepBut(size_t argument, int32_t fallback) {
    const bool isGiven = context_.hasInput(argument) &&
                         context_.inputs[argument].type() == OperandType::kInt32 &&
                         context_.operation->type != OperationType::kTopkV2;
    if (!isGiven) return keepOff(fallback);
    HEARTH_ASSIGN(const int32_t axis, context_.scalar<int32_t>(argument));
    return keepOff(axis);
  }

  // Dimension 0 is a batch; SPACE_TO_BATCH_ND and its inverse change it by a factor.
  Status keepFirst() {
    const FollowedTensor& input = inputs_[0];
    if (!isOnlyFirstInput() || input.parts != bit(0)) return refused();
    for (FollowedTensor& output : outputs_) {
      if (!output.isKnown || output.now.empty() ||
          uint64_t{output.now[0]} * input.before[0] != uint64_t{output.before[0]} * input.now[0])
        return refused();
      output.parts = bit(0);
      if (output.now[0] == input.now[0])
        copyJoint(input, &output);
      else if (input.isJoined)
        return refused();
    }
    return {};
  }

  // All but the last `mixed` dimensions are a batch.
  Status keepLeading(size_t mixed) {
    const size_t rank = inputs_[0].now.size();
    for (size_t i = rank < mixed ? 0 : rank - mixed; i < rank; ++i)
      if (holdsParts(inputs_[0], i)) return refused();
    return keep();
  }

  // Inputs from `first` to before `last` are aligned at their last dimension. Where one holds
  // parts, the others hold them, too, or have the same for each.
  Status broadcast(size_t last, size_t first) {
    FollowedTensor& output = outputs_[0];
    const size_t rank = output.now.size();
    for (size_t k = 0; k < rank; ++k) {
      const FollowedTensor* holder = nullptr;
      for (size_t i = first; i < last; ++i) {
        const size_t own = inputs_[i].now.size();
        if (own + k >= rank && holdsParts(inputs_[i], own + k - rank)) holder = &inputs_[i];
      }
      if (holder == nullptr) continue;
      const size_t place = holder->now.size() + k - rank;
      if (!carry(*holder, place, &output, k)) return refused();
      for (size_t i = first; i < last; ++i) {
        const FollowedTensor& other = inputs_[i];
        if (&other == holder || other.now.size() + k < rank || isArgument(i)) continue;
        const size_t own = other.now.size() + k - rank;
        const bool isOne = other.now[own] == 1 && !holdsParts(other, own);
        const bool isAlike = holdsParts(other, own) && other.before[own] == holder->before[place] &&
                             (own != 0 || place != 0 || other.isJoined == holder->isJoined);
        if (!isOne && !isAlike) return refused();
      }
    }
    return {};
  }

  // Scalars, and the shape of BROADCAST_TO.
  bool isArgument(size_t input) const {
    return graph::isScalar(context_.inputs[input].type()) ||
           (context_.operation->type == OperationType::kBroadcastTo && input == 1);
  }

  Status reduce(const std::vector<int64_t>& axes) {
    const FollowedTensor& input = inputs_[0];
    FollowedTensor& output = outputs_[0];
    const auto rank = static_cast<int64_t>(input.now.size());
    std::vector<bool> isReduced(input.now.size());
    for (int64_t axis : axes) {
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank || holdsParts(input, static_cast<size_t>(axis)))
        return refused();
      isReduced[static_cast<size_t>(axis)] = true;
    }
    const bool keeps = output.now.size() == input.now.size();
    size_t to = 0;
    for (size_t i = 0; i < input.now.size(); ++i) {
      if (isReduced[i] && !keeps) continue;
      if (!isReduced[i] && !carry(input, i, &output, to)) return refused();
      ++to;
    }
    return {};
  }

  Status reshape() {
    const auto target = Reshaping(inputs_[0], outputs_[0].before).run();
    if (!target || target->now != outputs_[0].now) return refused();
    outputs_[0] = *target;
    return {};
  }

  // Dimensions of 1 come or go; all others keep their order. STRIDED_SLICE may also shorten some.
  Status moveInOrder() {
    const FollowedTensor& input = inputs_[0];
    FollowedTensor& output = outputs_[0];
    HEARTH_ASSIGN(const std::vector<bool> isGone, removedDimensions());
    size_t to = 0;
    for (size_t i = 0; i < input.now.size(); ++i) {
      if (added_ == i) ++to;
      if (isGone[i]) {
        if (holdsParts(input, i)) return refused();
        continue;
      }
      if (holdsParts(input, i) && !carry(input, i, &output, to)) return refused();
      ++to;
    }
    return {};
  }

  // Also sets `added_`.
  Result<std::vector<bool>> removedDimensions() {
    const FollowedTensor& input = inputs_[0];
    std::vector<bool> isGone(input.now.size());
    const auto rank = static_cast<int64_t>(input.now.size());
    switch (context_.operation->type) {
      case OperationType::kExpandDims: {
        HEARTH_ASSIGN(const int32_t axis, context_.scalar<int32_t>(1));
        added_ = static_cast<size_t>(axis < 0 ? axis + rank + 1 : axis);
        break;
      }
      case OperationType::kSqueeze: {
        const bool hasAxes = context_.hasInput(1) && context_.inputs[1].elementCount() != 0;
        for (size_t i = 0; !hasAxes && i < isGone.size(); ++i) isGone[i] = input.before[i] == 1;
        if (!hasAxes) break;
        HEARTH_ASSIGN(const std::vector<int64_t> axes, context_.intVector(1));
        for (const int64_t axis : axes)
          isGone[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
        break;
      }
      default: {
        HEARTH_ASSIGN(const std::vector<int64_t> strides, context_.intVector(3));
        HEARTH_ASSIGN(const int32_t shrinkMask, context_.scalar<int32_t>(6));
        for (size_t i = 0; i < isGone.size() && i < 31; ++i) {
          isGone[i] = ((shrinkMask >> i) & 1) != 0;
          if (holdsParts(input, i) && i < strides.size() && strides[i] < 0) return refused();
        }
      }
    }
    return isGone;
  }

  Status transpose() {
    const FollowedTensor& input = inputs_[0];
    std::vector<int64_t> order;
    if (context_.hasInput(1) && context_.inputs[1].elementCount() != 0) {
      HEARTH_ASSIGN(order, context_.intVector(1));
    } else {
      for (size_t i = input.now.size(); i-- > 0;) order.push_back(static_cast<int64_t>(i));
    }
    for (size_t i = 0; i < order.size(); ++i)
      if (!carry(input, static_cast<size_t>(order[i]), &outputs_[0], i)) return refused();
    return {};
  }

  Status concatenate() {
    const size_t count = context_.inputs.size() - 1;
    HEARTH_ASSIGN(int32_t axis, context_.scalar<int32_t>(count));
    if (axis < 0) axis += static_cast<int32_t>(inputs_[0].now.size());
    return allAlike(0, count, static_cast<size_t>(axis), [](size_t i) { return i; });
  }

  Status pack() {
    HEARTH_ASSIGN(int32_t axis, context_.scalar<int32_t>(0));
    if (axis < 0) axis += static_cast<int32_t>(outputs_[0].now.size());
    const auto place = static_cast<size_t>(axis);
    return allAlike(1, context_.inputs.size(), 64,
                    [place](size_t i) { return i < place ? i : i + 1; });
  }

  // Inputs from `first` on have their parts in the same dimensions, none in `mixed`; constants that
  // were repeated for each part have them, too.
  template <typename Place>
  Status allAlike(size_t first, size_t last, size_t mixed, const Place& place) {
    const FollowedTensor* example = nullptr;
    for (size_t i = first; i < last; ++i) {
      if (context_.inputs[i].dimensions != inputs_[i].now) continue;
      const FollowedTensor& input = inputs_[i];
      if (example == nullptr) example = &input;
      if (input.parts != example->parts || input.isJoined != example->isJoined) return refused();
      for (size_t k = 0; k < input.now.size(); ++k)
        if (holdsParts(input, k) && (k == mixed || !carry(input, k, &outputs_[0], place(k))))
          return refused();
    }
    return {};
  }

  Status fullyConnected() {
    const FollowedTensor& input = inputs_[0];
    FollowedTensor& output = outputs_[0];
    if (!isOnlyFirstInput()) return refused();
    HEARTH_ASSIGN(const size_t row, rowOf(input));
    for (size_t i = row; i < input.now.size(); ++i)
      if (holdsParts(input, i)) return refused();
    if (output.now.size() == row + 1) {
      for (size_t i = 0; i < row; ++i)
        if (!carry(input, i, &output, i)) return refused();
      return {};
    }
    // The leading dimensions become one.
    if (input.parts != bit(0) || output.now.size() != 2) return refused();
    output.parts = bit(0);
    if (output.before[0] == 1) return {};
    output.isJoined = true;
    output.partsBefore = input.isJoined ? input.partsBefore : input.before[0];
    output.partsNow = input.isJoined ? input.partsNow : input.now[0];
    return {};
  }

 public:
  // The first of the dimensions that the weights of FULLY_CONNECTED meet as one.
  Result<size_t> rowOf(const FollowedTensor& input) const {
    const uint64_t size = context_.inputs[1].dimensions.back();
    uint64_t product = 1;
    size_t row = input.before.size();
    while (row > 0 && product < size) product *= input.before[--row];
    const bool isSame =
        product == size &&
        std::equal(input.before.begin() + static_cast<ptrdiff_t>(row), input.before.end(),
                   input.now.begin() + static_cast<ptrdiff_t>(row));
    if (!isSame)
      return refuse(context_, inputs_,
                    base::formatText("and its weights are made for rows of {}", size));
    return row;
  }

 private:
  Status multiply() {
    const FollowedTensor& left = inputs_[0];
    const FollowedTensor& right = inputs_[1];
    HEARTH_ASSIGN(const bool isLeftTransposed, context_.scalar<bool>(2, false));
    const size_t rank = left.now.size();
    const size_t otherRank = right.now.size();
    if (rank < 2 || otherRank < 2) return refused();
    const uint64_t matrix = bit(rank - 1) | bit(rank - 2);
    if ((right.parts & (bit(otherRank - 1) | bit(otherRank - 2))) != 0) return refused();
    if ((left.parts & matrix) == 0) {
      // Matrices of a batch.
      FollowedTensor& output = outputs_[0];
      for (size_t k = 0; k + 2 < output.now.size(); ++k) {
        const bool hasLeft = rank + k >= output.now.size();
        const bool hasRight = otherRank + k >= output.now.size();
        const size_t mine = rank + k - output.now.size();
        const size_t other = otherRank + k - output.now.size();
        const bool isLeft = hasLeft && holdsParts(left, mine);
        const bool isRight = hasRight && holdsParts(right, other);
        if (!isLeft && !isRight) continue;
        const FollowedTensor& holder = isLeft ? left : right;
        if (!carry(holder, isLeft ? mine : other, &output, k)) return refused();
        if (isLeft && isRight && left.before[mine] != right.before[other]) return refused();
        if (isLeft && !isRight && hasRight && right.now[other] != 1) return refused();
        if (isRight && !isLeft && hasLeft && left.now[mine] != 1) return refused();
      }
      return {};
    }
    // Rows of one matrix, times a matrix without parts.
    const size_t rows = isLeftTransposed ? rank - 1 : rank - 2;
    if (right.parts != 0 || left.parts != bit(rows) || isLeftTransposed) return refused();
    const size_t to = outputs_[0].now.size() - 2;
    return carry(left, rows, &outputs_[0], to) ? Status() : refused();
  }

  Status gather() {
    const FollowedTensor& table = inputs_[0];
    const FollowedTensor& indices = inputs_[2];
    HEARTH_ASSIGN(int32_t axis, context_.scalar<int32_t>(1));
    HEARTH_ASSIGN(const int32_t batchRank, context_.scalar<int32_t>(3, 0));
    if (axis < 0) axis += static_cast<int32_t>(table.now.size());
    const auto place = static_cast<size_t>(axis);
    if (batchRank != 0 || (table.parts != 0 && indices.parts != 0) || holdsParts(table, place))
      return refused();
    FollowedTensor& output = outputs_[0];
    for (size_t i = 0; i < table.now.size(); ++i)
      if (holdsParts(table, i) &&
          !carry(table, i, &output, i < place ? i : i + indices.now.size() - 1))
        return refused();
    for (size_t i = 0; i < indices.now.size(); ++i)
      if (holdsParts(indices, i) && !carry(indices, i, &output, place + i)) return refused();
    return {};
  }

  Status recur() {
    HEARTH_ASSIGN(const std::optional<size_t> found, batchOfStates(context_));
    const size_t batch = found.value_or(0);
    const FollowedTensor& input = inputs_[0];
    if (input.parts != bit(batch) || input.isJoined) return refused();
    // Outputs are sequences, or states with the batch first.
    for (FollowedTensor& output : outputs_) {
      if (!output.isKnown) continue;
      const size_t place = output.now.size() == input.now.size() ? batch : 0;
      if (!carry(input, batch, &output, place)) return refused();
    }
    return {};
  }

 private:
  const OperationContext& context_;
  std::span<const FollowedTensor> inputs_;
  std::span<FollowedTensor> outputs_;
  std::optional<size_t> added_;  // the dimension that EXPAND_DIMS adds
};

bool isChanged(std::span<const FollowedTensor> tensors) {
  return std::ranges::any_of(tensors, &FollowedTensor::isChanged);
}

}  // namespace

Result<std::optional<size_t>> batchOfStates(const OperationContext& context) {
  const auto batchOf = [&](size_t timeMajor) -> Result<std::optional<size_t>> {
    HEARTH_ASSIGN(const bool isTimeMajor, context.scalar<bool>(timeMajor, false));
    return isTimeMajor ? 1 : 0;
  };
  switch (context.operation->type) {
    case OperationType::kLstm:
    case OperationType::kRnn:
    case OperationType::kSvdf:
    case OperationType::kQuantizedLstm:
    case OperationType::kQuantized16bitLstm:
      return 0;
    case OperationType::kUnidirectionalSequenceLstm:
      return batchOf(23);
    case OperationType::kBidirectionalSequenceLstm:
      return batchOf(52);
    case OperationType::kBidirectionalSequenceRnn:
      return batchOf(13);
    case OperationType::kQuantizedSequenceLstm:
      return batchOf(quantized_sequence_lstm::kTimeMajor);
    case OperationType::kUnidirectionalSequenceRnn: {
      HEARTH_ASSIGN(const int32_t timeMajor, context.scalar<int32_t>(6, 0));
      return timeMajor != 0 ? 1 : 0;
    }
    default:
      return std::nullopt;
  }
}

std::string describeChange(const OperationContext& context,
                           std::span<const FollowedTensor> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].isChanged())
      return base::formatText("its input {} is {} in place of {}", nameOf(context, i),
                              graph::describeDimensions(inputs[i].now),
                              graph::describeDimensions(inputs[i].before));
  return "its inputs are as in the file";
}

Result<std::vector<FollowedConstant>> followConstants(const OperationContext& context,
                                                      std::span<const FollowedTensor> inputs,
                                                      std::span<const FollowedTensor> outputs) {
  const auto isConstant = [&](size_t input) {
    return context.hasInput(input) && context.inputs[input].operand->isConstant();
  };
  if (!isChanged(inputs) || outputs.empty() || !outputs[0].isKnown) return Constants();
  switch (context.operation->type) {
    case OperationType::kReshape:
      if (isConstant(1)) return followReshape(context, inputs, outputs);
      break;
    case OperationType::kBroadcastTo:
      if (isConstant(1)) return followBroadcastTo(context, inputs);
      break;
    case OperationType::kSlice:
      if (isConstant(1) && isConstant(2)) return followSlice(context, inputs);
      break;
    case OperationType::kStridedSlice:
      if (isConstant(1) && isConstant(2) && isConstant(3))
        return followStridedSlice(context, inputs);
      break;
    case OperationType::kTransposeConv2d:
      if (isConstant(3)) return followTransposeConv(context, inputs);
      break;
    case OperationType::kConcatenation:
      return followConcatenation(context, inputs);
    case OperationType::kGather:
      if (isConstant(2)) HEARTH_TRY(refusePlaces(context, inputs));
      break;
    default:
      break;
  }
  return Constants();
}

Status followOutputs(const OperationContext& context, std::span<const FollowedTensor> inputs,
                     std::span<FollowedTensor> outputs) {
  PartsFollower follower(context, inputs, outputs);
  const auto isKnown = [](const FollowedTensor& tensor) {
    return tensor.isKnown;
  };
  const bool hasParts =
      std::ranges::any_of(inputs, [](const FollowedTensor& input) { return input.parts != 0; });
  if (hasParts && !(std::ranges::all_of(inputs, isKnown) && std::ranges::all_of(outputs, isKnown)))
    return refuseMixing(context, inputs);
  if (hasParts) return follower.run();
  if (context.operation->type == OperationType::kFill ||
      context.operation->type == OperationType::kBroadcastTo) {
    follower.fill();
  } else if (context.operation->type == OperationType::kFullyConnected && inputs[0].isChanged()) {
    HEARTH_TRY(follower.rowOf(inputs[0]));
  }
  return {};
}

}  // namespace hearth::ops
