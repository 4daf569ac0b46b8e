// SPDX-License-Identifier: Apache-2.0
// Operations that move elements: reshaping, slicing, joining, padding.
#include <limits>

#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

Result<int32_t> toInt32(int64_t value) {
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max())
    return fail(ErrorCode::kBadData, "The number {} does not fit in 32 bits.", value);
  return static_cast<int32_t>(value);
}

Result<size_t> resolveAxis(int64_t axis, size_t rank) {
  const int64_t count = static_cast<int64_t>(rank);
  if (axis < -count || axis >= count)
    return fail(ErrorCode::kBadData, "Its axis {} is outside [-{}, {}).", axis, count, count);
  return static_cast<size_t>(axis < 0 ? axis + count : axis);
}

// Makes an output a constant of the model.
Status makeConstant(OperatorView& view, uint32_t target, std::span<const uint8_t> bytes) {
  HEARTH_ASSIGN(const graph::DataLocation location, view.builder().model().copyConstant(bytes));
  graph::Operand& operand = view.builder().operand(target);
  operand.lifetime = graph::Lifetime::kConstantCopy;
  operand.location = location;
  return {};
}

// An integer tensor of any rank as one of rank 1.
Result<uint32_t> asList(OperatorView& view, uint32_t ints) {
  if (view.operand(ints).isConstant()) {
    HEARTH_ASSIGN(const std::vector<int64_t> values, view.builder().constantInts(ints));
    const std::vector<int32_t> narrow(values.begin(), values.end());
    return view.builder().intTensor(narrow);
  }
  constexpr int32_t kWhole[] = {-1};
  HEARTH_ASSIGN(const uint32_t whole, view.builder().intTensor(kWhole));
  HEARTH_ASSIGN(const uint32_t list, view.builder().temporaryLike(ints));
  graph::Operand& operand = view.builder().operand(list);
  operand.isRankZeroTensor = false;
  operand.dimensions = {0};
  HEARTH_TRY(view.emit(OperationType::kReshape, {ints, whole}, {list}));
  return list;
}

// Whether the file leaves out the rank of a RESHAPE's output and its arguments hold a shape of rank
// 1 or more.
bool hasShapeOfSomeRank(OperatorView& view, uint32_t target) {
  if (!view.builder().isRankUnsaid(target)) return false;
  const auto* options = view.options<schema::ReshapeOptions>().new_shape();
  if (options != nullptr && options->size() != 0) return true;
  if (!view.hasInput(1)) return false;
  const auto shape = view.input(1);
  if (!shape) return false;
  const graph::Operand& operand = view.operand(*shape);
  return !operand.isRankZeroTensor && operand.dimensions != graph::Dimensions{0};
}

Status translateReshape(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t target, view.output(0));
  if (view.operand(target).isRankZeroTensor && !hasShapeOfSomeRank(view, target)) {
    // A shape without elements cannot be an operand.
    HEARTH_ASSIGN(const uint32_t axes, view.builder().omitted(OperandType::kTensorInt32));
    return view.emit(OperationType::kSqueeze, {input, axes}, {target});
  }
  const auto* source = view.options<schema::ReshapeOptions>().new_shape();
  const bool hasOptions = source != nullptr && source->size() != 0;
  if (view.hasInput(1)) {
    HEARTH_ASSIGN(uint32_t shape, view.intTensorInput(1));
    // TFLite's options hold the shape, too, and count where the tensor is no list.
    const bool isList = view.operand(shape).dimensions.size() == 1;
    if (!isList && !hasOptions) {
      HEARTH_ASSIGN(shape, asList(view, shape));
    }
    if (isList || !hasOptions) return view.emit(type, {input, shape}, {target});
  }
  if (!hasOptions)
    return fail(ErrorCode::kBadData, "It has no shape, neither as input nor in its options.");
  HEARTH_TRY(view.builder().model().charge(source->size() * sizeof(int32_t)));
  const std::vector<int32_t> values(source->begin(), source->end());
  HEARTH_ASSIGN(const uint32_t shape, view.builder().intTensor(values));
  return view.emit(type, {input, shape}, {target});
}

Status translateSqueeze(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  const auto* source = view.options<schema::SqueezeOptions>().squeeze_dims();
  if (source == nullptr || source->size() == 0) {
    HEARTH_ASSIGN(const uint32_t axes, view.builder().omitted(OperandType::kTensorInt32));
    return view.emit(type, {input, axes});
  }
  std::vector<int32_t> values;
  for (const int32_t axis : *source) {
    HEARTH_ASSIGN(const size_t resolved, resolveAxis(axis, view.operand(input).dimensions.size()));
    values.push_back(static_cast<int32_t>(resolved));
    if (values.size() > view.operand(input).dimensions.size())
      return fail(ErrorCode::kBadData, "It removes {} dimensions of {}.", source->size(),
                  graph::describe(view.operand(input)));
  }
  HEARTH_ASSIGN(const uint32_t axes, view.builder().intTensor(values));
  return view.emit(type, {input, axes});
}

Status translateExpandDims(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const int32_t axis, view.constantInt(1));
  HEARTH_ASSIGN(const uint32_t axisOperand, view.scalar(axis));
  return view.emit(type, {input, axisOperand});
}

Status translateConcatenation(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::ConcatenationOptions>();
  std::vector<uint32_t> inputs;
  for (size_t i = 0; i < view.inputCount(); ++i) {
    HEARTH_ASSIGN(const uint32_t input, view.input(i));
    inputs.push_back(input);
  }
  if (inputs.empty()) return fail(ErrorCode::kBadData, "It has no input.");
  HEARTH_ASSIGN(const size_t axis,
                resolveAxis(options.axis(), view.operand(inputs[0]).dimensions.size()));
  HEARTH_ASSIGN(const uint32_t axisOperand, view.scalar(static_cast<int32_t>(axis)));
  inputs.push_back(axisOperand);
  HEARTH_ASSIGN(const Activation activation,
                view.planActivation(options.fused_activation_function(), false));
  HEARTH_TRY(view.emit(type, std::move(inputs), {activation.target}));
  return view.finishActivation(activation);
}

Status translatePack(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::PackOptions>();
  HEARTH_ASSIGN(const uint32_t axis, view.scalar(options.axis()));
  std::vector<uint32_t> inputs = {axis};
  for (size_t i = 0; i < view.inputCount(); ++i) {
    HEARTH_ASSIGN(const uint32_t input, view.input(i));
    inputs.push_back(input);
  }
  if (inputs.size() == 1) return fail(ErrorCode::kBadData, "It has no input.");
  return view.emit(type, std::move(inputs));
}

Result<std::vector<uint32_t>> allOutputs(OperatorView& view) {
  std::vector<uint32_t> outputs;
  for (size_t i = 0; i < view.outputCount(); ++i) {
    HEARTH_ASSIGN(const uint32_t output, view.output(i));
    outputs.push_back(output);
  }
  if (outputs.empty()) return fail(ErrorCode::kBadData, "It has no output.");
  return outputs;
}

Status emitSplit(OperatorView& view, uint32_t input, size_t axis, std::vector<uint32_t> outputs) {
  HEARTH_ASSIGN(const uint32_t axisOperand, view.scalar(static_cast<int32_t>(axis)));
  HEARTH_ASSIGN(const uint32_t count, view.scalar(static_cast<int32_t>(outputs.size())));
  return view.emit(OperationType::kSplit, {input, axisOperand, count}, std::move(outputs));
}

Status translateSplit(OperatorView& view, OperationType) {
  HEARTH_ASSIGN(const int32_t axis, view.constantInt(0));
  HEARTH_ASSIGN(const uint32_t input, view.input(1));
  HEARTH_ASSIGN(const size_t resolved, resolveAxis(axis, view.operand(input).dimensions.size()));
  HEARTH_ASSIGN(std::vector<uint32_t> outputs, allOutputs(view));
  return emitSplit(view, input, resolved, std::move(outputs));
}

// Parts of unequal size: one SLICE for each.
Status translateSplitV(OperatorView& view, OperationType) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(std::vector<int64_t> sizes, view.constantInts(1));
  HEARTH_ASSIGN(const int32_t axis, view.constantInt(2));
  const size_t rank = view.operand(input).dimensions.size();
  HEARTH_ASSIGN(const size_t resolved, resolveAxis(axis, rank));
  HEARTH_ASSIGN(const std::vector<uint32_t> outputs, allOutputs(view));
  if (outputs.size() != sizes.size())
    return fail(ErrorCode::kBadData, "It has {} sizes for {} outputs.", sizes.size(),
                outputs.size());
  int64_t known = 0;
  int64_t* open = nullptr;
  for (int64_t& size : sizes) {
    HEARTH_TRY(toInt32(size));
    if (size < -1 || (size == -1 && open != nullptr))
      return fail(ErrorCode::kBadData, "Its sizes hold {}, at most one may be -1.", size);
    if (size == -1)
      open = &size;
    else
      known += size;
  }
  const int64_t whole = view.operand(input).dimensions[resolved];
  if (open != nullptr) {
    if (whole == 0)
      return fail(ErrorCode::kUnsupported, "One of its sizes is -1 and the dimension is unknown.");
    *open = whole - known;
  }
  int64_t position = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (sizes[i] < 0 || (whole != 0 && position + sizes[i] > whole))
      return fail(ErrorCode::kBadData, "Its part {} of {} elements exceeds the dimension {}.", i,
                  sizes[i], whole);
    std::vector<int32_t> begin(rank, 0);
    std::vector<int32_t> size(rank, -1);
    HEARTH_ASSIGN(begin[resolved], toInt32(position));
    HEARTH_ASSIGN(size[resolved], toInt32(sizes[i]));
    HEARTH_ASSIGN(const uint32_t beginOperand, view.builder().intTensor(begin));
    HEARTH_ASSIGN(const uint32_t sizeOperand, view.builder().intTensor(size));
    HEARTH_TRY(view.emit(OperationType::kSlice, {input, beginOperand, sizeOperand}, {outputs[i]}));
    position += sizes[i];
  }
  return {};
}

// A SPLIT into parts of one element along the axis, which SQUEEZE then removes.
Status translateUnpack(OperatorView& view, OperationType) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  const size_t rank = view.operand(input).dimensions.size();
  HEARTH_ASSIGN(const size_t axis, resolveAxis(view.options<schema::UnpackOptions>().axis(), rank));
  HEARTH_ASSIGN(const std::vector<uint32_t> outputs, allOutputs(view));
  std::vector<uint32_t> parts;
  for (size_t i = 0; i < outputs.size(); ++i) {
    HEARTH_ASSIGN(const uint32_t part, view.builder().temporaryLike(input));
    view.builder().operand(part).dimensions[axis] = 1;
    parts.push_back(part);
  }
  HEARTH_TRY(emitSplit(view, input, axis, parts));
  const int32_t removed[] = {static_cast<int32_t>(axis)};
  HEARTH_ASSIGN(const uint32_t axes, view.builder().intTensor(removed));
  for (size_t i = 0; i < outputs.size(); ++i)
    HEARTH_TRY(view.emit(OperationType::kSqueeze, {parts[i], axes}, {outputs[i]}));
  return {};
}

// The ends of a slice from its begins and its sizes.
Result<uint32_t> endsOf(OperatorView& view, uint32_t begins, uint32_t sizes) {
  if (!view.operand(begins).isConstant() || !view.operand(sizes).isConstant()) {
    HEARTH_ASSIGN(const uint32_t ends, view.builder().temporaryLike(begins));
    HEARTH_ASSIGN(const uint32_t none, view.scalar(kFuseNone));
    HEARTH_TRY(view.emit(OperationType::kAdd, {begins, sizes, none}, {ends}));
    return ends;
  }
  HEARTH_ASSIGN(const std::vector<int64_t> begin, view.builder().constantInts(begins));
  HEARTH_ASSIGN(const std::vector<int64_t> size, view.builder().constantInts(sizes));
  if (begin.size() != size.size())
    return fail(ErrorCode::kBadData, "Its limits have {} and {} elements.", begin.size(),
                size.size());
  std::vector<int32_t> end;
  for (size_t i = 0; i < begin.size(); ++i) {
    HEARTH_ASSIGN(const int32_t narrow, toInt32(begin[i] + size[i]));
    end.push_back(narrow);
  }
  return view.builder().intTensor(end);
}

Status translateStridedSlice(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::StridedSliceOptions>();
  if (options.ellipsis_mask() != 0 || options.new_axis_mask() != 0)
    return fail(ErrorCode::kUnsupported,
                "Its ellipsis mask {} and new axis mask {} are not supported, they must be 0.",
                options.ellipsis_mask(), options.new_axis_mask());
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  std::vector<uint32_t> limits;
  for (size_t i = 1; i <= 3; ++i) {
    HEARTH_ASSIGN(const uint32_t limit, view.intTensorInput(i));
    limits.push_back(limit);
  }
  if (options.offset()) {
    HEARTH_ASSIGN(limits[1], endsOf(view, limits[0], limits[1]));
  }
  HEARTH_ASSIGN(const uint32_t beginOperand, view.scalar(options.begin_mask()));
  HEARTH_ASSIGN(const uint32_t endOperand, view.scalar(options.end_mask()));
  HEARTH_ASSIGN(const uint32_t shrink, view.scalar(options.shrink_axis_mask()));
  return view.emit(type,
                   {input, limits[0], limits[1], limits[2], beginOperand, endOperand, shrink});
}

// Turns a constant of one element into the scalar that NNAPI wants for elements of `type`.
Result<uint32_t> elementScalar(OperatorView& view, uint32_t constant, OperandType type) {
  const graph::Operand& source = view.operand(constant);
  if (!source.isConstant())
    return fail(ErrorCode::kUnsupported, "Its value {} must be a constant.",
                graph::describe(source));
  HEARTH_ASSIGN(const uint64_t count, graph::elementCount(source));
  if (count != 1)
    return fail(ErrorCode::kBadData, "Its value {} must have one element.",
                graph::describe(source));
  graph::Operand scalar;
  switch (type) {
    case OperandType::kTensorFloat32:
      scalar.type = OperandType::kFloat32;
      break;
    case OperandType::kTensorFloat16:
      scalar.type = OperandType::kFloat16;
      break;
    case OperandType::kTensorInt32:
      scalar.type = OperandType::kInt32;
      break;
    case OperandType::kTensorBool8:
      scalar.type = OperandType::kBool;
      break;
    case OperandType::kTensorQuant8Asymm:
    case OperandType::kTensorQuant8AsymmSigned: {
      HEARTH_ASSIGN(const std::vector<int64_t> values, view.builder().constantInts(constant));
      return view.scalar(static_cast<int32_t>(values[0]));
    }
    default:
      return fail(ErrorCode::kUnsupported, "Its value {} has a type that is not supported.",
                  graph::describe(source));
  }
  if (source.type != type)
    return fail(ErrorCode::kBadData, "Its value is {}, its type must be {}.",
                graph::describe(source), graph::nameOf(type));
  const size_t size = graph::elementSize(type);
  const uint8_t* data = view.builder().model().model().constantData(source);
  const std::vector<uint8_t> bytes(data, data + size);
  return view.builder().constantTensor(std::move(scalar), bytes);
}

// A shape that the file determines becomes a constant, so that shapes computed from it are known.
Status translateShape(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t target, view.output(0));
  const graph::Operand& source = view.operand(input);
  graph::Operand& result = view.builder().operand(target);
  const bool isWide = result.type == OperandType::kTensorInt64;
  if (view.builder().isRankUnsaid(target) && !source.dimensions.empty()) {
    result.dimensions = {static_cast<uint32_t>(source.dimensions.size())};
    result.isRankZeroTensor = false;
  }
  const bool isOpen = view.builder().model().hasOpenShapes() && !source.isConstant();
  if (isOpen || !graph::isFullySpecified(source) ||
      (!isWide && result.type != OperandType::kTensorInt32) ||
      result.dimensions != graph::Dimensions{static_cast<uint32_t>(source.dimensions.size())})
    return view.emit(type, {input}, {target});
  std::vector<uint8_t> bytes;
  for (const uint32_t dimension : source.dimensions) {
    const int64_t value = dimension;
    const auto* start = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), start, start + (isWide ? sizeof(int64_t) : sizeof(int32_t)));
  }
  return makeConstant(view, target, bytes);
}

Status translateReverseSequence(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::ReverseSequenceOptions>();
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t lengths, view.input(1));
  HEARTH_ASSIGN(const uint32_t sequence, view.scalar(options.seq_dim()));
  HEARTH_ASSIGN(const uint32_t batch, view.scalar(options.batch_dim()));
  return view.emit(type, {input, lengths, sequence, batch});
}

Status translatePadV2(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t paddings, view.intTensorInput(1));
  HEARTH_ASSIGN(const uint32_t value, view.input(2));
  HEARTH_ASSIGN(const uint32_t scalar, elementScalar(view, value, view.operand(input).type));
  return view.emit(type, {input, paddings, scalar});
}

Status translateMirrorPad(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t paddings, view.intTensorInput(1));
  const schema::MirrorPadMode mode = view.options<schema::MirrorPadOptions>().mode();
  if (mode != schema::MirrorPadMode::REFLECT && mode != schema::MirrorPadMode::SYMMETRIC)
    return fail(ErrorCode::kBadData, "Its mode {} is unknown.", static_cast<int>(mode));
  HEARTH_ASSIGN(const uint32_t modeOperand, view.scalar(static_cast<int32_t>(mode)));
  return view.emit(type, {input, paddings, modeOperand});
}

Status translateFill(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t dimensions, view.intTensorInput(0));
  HEARTH_ASSIGN(const uint32_t value, view.input(1));
  return view.emit(type, {dimensions, value});
}

// NNAPI reverses one axis, so several become a chain.
Status translateReverse(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(uint32_t input, view.input(0));
  HEARTH_ASSIGN(const std::vector<int64_t> axes, view.constantInts(1));
  HEARTH_ASSIGN(const uint32_t target, view.output(0));
  if (axes.empty() || axes.size() > view.operand(input).dimensions.size())
    return fail(ErrorCode::kBadData, "It reverses {} dimensions of {}.", axes.size(),
                graph::describe(view.operand(input)));
  HEARTH_ASSIGN(input, view.rescaledLike(input, target));
  for (size_t i = 0; i < axes.size(); ++i) {
    HEARTH_ASSIGN(const size_t axis, resolveAxis(axes[i], view.operand(input).dimensions.size()));
    const int32_t values[] = {static_cast<int32_t>(axis)};
    HEARTH_ASSIGN(const uint32_t axisOperand, view.builder().intTensor(values));
    uint32_t next = target;
    if (i + 1 < axes.size()) {
      HEARTH_ASSIGN(next, view.builder().temporaryLike(input));
    }
    HEARTH_TRY(view.emit(type, {input, axisOperand}, {next}));
    input = next;
  }
  return {};
}

}  // namespace

std::span<const TranslatorEntry> shapeTranslators() {
  static constexpr TranslatorEntry kTranslators[] = {
      {BuiltinOperator::BITCAST, translatePlain<1>, OperationType::kBitcast},
      {BuiltinOperator::MATRIX_DIAG, translatePlain<1>, OperationType::kMatrixDiag},
      {BuiltinOperator::MATRIX_SET_DIAG, translatePlain<2>, OperationType::kMatrixSetDiag},
      {BuiltinOperator::RESHAPE, translateReshape, OperationType::kReshape},
      {BuiltinOperator::SQUEEZE, translateSqueeze, OperationType::kSqueeze},
      {BuiltinOperator::EXPAND_DIMS, translateExpandDims, OperationType::kExpandDims},
      {BuiltinOperator::CONCATENATION, translateConcatenation, OperationType::kConcatenation},
      {BuiltinOperator::PACK, translatePack, OperationType::kPack},
      {BuiltinOperator::UNPACK, translateUnpack, OperationType::kSplit},
      {BuiltinOperator::SPLIT, translateSplit, OperationType::kSplit},
      {BuiltinOperator::SPLIT_V, translateSplitV, OperationType::kSlice},
      {BuiltinOperator::SLICE, translateWithInts<3>, OperationType::kSlice},
      {BuiltinOperator::STRIDED_SLICE, translateStridedSlice, OperationType::kStridedSlice},
      {BuiltinOperator::TRANSPOSE, translateWithInts<2>, OperationType::kTranspose},
      {BuiltinOperator::TILE, translateWithInts<2>, OperationType::kTile},
      {BuiltinOperator::BROADCAST_ARGS, translatePlain<2>, OperationType::kBroadcastArgs},
      {BuiltinOperator::RANGE, translatePlain<3>, OperationType::kRange},
      {BuiltinOperator::RANK, translatePlain<1>, OperationType::kRank},
      {BuiltinOperator::REVERSE_SEQUENCE, translateReverseSequence,
       OperationType::kReverseSequence},
      {BuiltinOperator::SHAPE, translateShape, OperationType::kShape},
      {BuiltinOperator::BROADCAST_TO, translateWithInts<2>, OperationType::kBroadcastTo},
      {BuiltinOperator::DYNAMIC_UPDATE_SLICE, translateWithInts<3, 2>,
       OperationType::kDynamicUpdateSlice},
      {BuiltinOperator::PAD, translateWithInts<2>, OperationType::kPad},
      {BuiltinOperator::PADV2, translatePadV2, OperationType::kPadV2},
      {BuiltinOperator::MIRROR_PAD, translateMirrorPad, OperationType::kMirrorPad},
      {BuiltinOperator::FILL, translateFill, OperationType::kFill},
      {BuiltinOperator::REVERSE_V2, translateReverse, OperationType::kReverse},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
