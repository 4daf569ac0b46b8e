// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <vector>

#include "base/format.h"
#include "ops/following.h"
#include "ops/parts_rule.h"

namespace hearth::ops {
namespace {

class PartsFollower {
 public:
  PartsFollower(const OperationContext& context, std::span<const FollowedTensor> inputs,
                std::span<FollowedTensor> outputs)
      : context_(context), inputs_(inputs), outputs_(outputs) {}

  Status run() {
    using Kind = PartsRule::Kind;
    const PartsRule rule = partsRuleOf(context_.operation->type);
    switch (rule.kind) {
      case Kind::kKeep:
        return keep();
      case Kind::kBroadcast:
        return broadcast(context_.inputs.size(), 0);
      case Kind::kKeepBatch:
        return keepFirst();
      case Kind::kKeepOffAxis:
        return keepBut(rule.axis);
      case Kind::kReverse: {
        HEARTH_ASSIGN(const std::vector<int64_t> axes, context_.intVector(rule.axis));
        return axes.size() == 1 ? keepOff(axes[0]) : refused();
      }
      case Kind::kReduceOne: {
        HEARTH_ASSIGN(const int32_t axis, context_.scalar<int32_t>(rule.axis));
        return reduce({axis});
      }
      case Kind::kReduce: {
        HEARTH_ASSIGN(const std::vector<int64_t> axes, context_.intVector(rule.axis));
        return reduce(axes);
      }
      case Kind::kKeepOffLastTwo:
        return keepLeading(2);
      case Kind::kReshape:
        return reshape();
      case Kind::kMoveInOrder:
        return moveInOrder();
      case Kind::kTranspose:
        return transpose();
      case Kind::kConcatenate:
        return concatenate();
      case Kind::kPack:
        return pack();
      case Kind::kFullyConnected:
        return fullyConnected();
      case Kind::kMultiply:
        return multiply();
      case Kind::kGather:
        return gather();
      case Kind::kRecur:
        return recur();
      case Kind::kDropAll:
        return {};
      case Kind::kMix:
        return refused();
    }
    return refused();
  }

  // Sizes of tensors that operations make of shapes alone, such as a state of zeros.
  void fill() {
    for (FollowedTensor& output : outputs_)
      for (size_t i = 0; output.isKnown && i < output.now.size(); ++i)
        if (output.before[i] == 1 && output.now[i] != 1) output.parts |= partsBit(i);
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
    output->parts |= partsBit(to);
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

  Status keepBut(size_t argument) {
    if (!context_.hasInput(argument) || context_.inputs[argument].type() != OperandType::kInt32)
      return keepOff(-1);
    HEARTH_ASSIGN(const int32_t axis, context_.scalar<int32_t>(argument));
    return keepOff(axis);
  }

  // Dimension 0 is a batch; SPACE_TO_BATCH_ND and its inverse change it by a factor.
  Status keepFirst() {
    const FollowedTensor& input = inputs_[0];
    if (!isOnlyFirstInput() || input.parts != partsBit(0)) return refused();
    for (FollowedTensor& output : outputs_) {
      if (!output.isKnown || output.now.empty() ||
          uint64_t{output.now[0]} * input.before[0] != uint64_t{output.before[0]} * input.now[0])
        return refused();
      output.parts = partsBit(0);
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
    const auto target = followReshape(inputs_[0], outputs_[0].before);
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
    if (input.parts != partsBit(0) || output.now.size() != 2) return refused();
    output.parts = partsBit(0);
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
      return refuseToFollow(context_, inputs_,
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
    const uint64_t matrix = partsBit(rank - 1) | partsBit(rank - 2);
    if ((right.parts & (partsBit(otherRank - 1) | partsBit(otherRank - 2))) != 0) return refused();
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
    if (right.parts != 0 || left.parts != partsBit(rows) || isLeftTransposed) return refused();
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
    if (input.parts != partsBit(batch) || input.isJoined) return refused();
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

}  // namespace

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
