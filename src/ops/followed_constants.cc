// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "ops/following.h"

namespace hearth::ops {
namespace {

// Larger constants are not repeated for each part.
constexpr uint64_t kMostRepeatedBytes = uint64_t{1} << 20;

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

Result<Constants> followReshapeShape(const OperationContext& context,
                                     std::span<const FollowedTensor> inputs,
                                     std::span<const FollowedTensor> outputs) {
  HEARTH_ASSIGN(const std::vector<int64_t> shape, context.intVector(1));
  const auto target = followReshape(inputs[0], outputs[0].before);
  if (!target)
    return refuseToFollow(
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
      return refuseToFollow(context, inputs, "which it repeats along the dimension that changes");
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
      return refuseToFollow(
          context, inputs,
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
      return refuseToFollow(
          context, inputs,
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
      return refuseToFollow(
          context, inputs,
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
    return refuseToFollow(context, inputs,
                          "and it gathers constant places of the dimension that changes");
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

bool isChanged(std::span<const FollowedTensor> tensors) {
  return std::ranges::any_of(tensors, &FollowedTensor::isChanged);
}

}  // namespace

Result<std::vector<FollowedConstant>> followConstants(const OperationContext& context,
                                                      std::span<const FollowedTensor> inputs,
                                                      std::span<const FollowedTensor> outputs) {
  const auto isConstant = [&](size_t input) {
    return context.hasInput(input) && context.inputs[input].operand->isConstant();
  };
  if (!isChanged(inputs) || outputs.empty() || !outputs[0].isKnown) return Constants();
  switch (context.operation->type) {
    case OperationType::kReshape:
      if (isConstant(1)) return followReshapeShape(context, inputs, outputs);
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

}  // namespace hearth::ops
