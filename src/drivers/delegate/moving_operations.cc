// SPDX-License-Identifier: Apache-2.0
// Operations that move elements: reshaping, slicing, joining, padding, looking up.
#include <algorithm>

#include "drivers/delegate/operation_writer.h"
#include "ops/concatenation.h"
#include "ops/pad.h"
#include "ops/slice.h"
#include "ops/space_to_batch.h"
#include "ops/space_to_depth.h"
#include "ops/split.h"
#include "ops/topk_v2.h"
#include "ops/transpose.h"
#include "ops/validation.h"
#include "tflite_abi/builtin_params.h"

namespace hearth::drivers::delegate {
namespace {

using ops::OperationType;
using tflite_abi::Builtin;

// Input 0 and the output of an operation with one of each.
struct Ends {
  int32_t input = 0, output = 0;
};

// TensorFlow Lite's operations that move quantised numbers do not rescale them.
Result<Ends> endsOf(OperationWriter& writer, size_t input = 0) {
  Ends ends;
  HEARTH_ASSIGN(ends.input, writer.input(input));
  HEARTH_ASSIGN(ends.output, writer.output());
  const WrittenTensor& from = writer.tensors().at(ends.input);
  const WrittenTensor& to = writer.tensors().at(ends.output);
  if (from.scales != to.scales || from.zeroPoints != to.zeroPoints)
    return fail(ErrorCode::kUnsupported,
                "TensorFlow Lite's {} does not change scales and zero points.",
                writer.context().describe());
  return ends;
}

template <typename Numbers>
std::vector<int32_t> narrow(const Numbers& numbers) {
  std::vector<int32_t> made;
  for (const auto number : numbers) made.push_back(static_cast<int32_t>(number));
  return made;
}

// RESHAPE, SQUEEZE and EXPAND_DIMS: the shape of the output is known.
Status writeReshape(OperationWriter& writer) {
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  const std::vector<int32_t> dims = writer.tensors().at(ends.output).dims;
  if (dims.size() > static_cast<size_t>(tflite_abi::kMostParamDimensions))
    return fail(ErrorCode::kUnsupported, "TensorFlow Lite reshapes to {} dimensions at most.",
                tflite_abi::kMostParamDimensions);
  tflite_abi::DimensionsParams params{};
  std::ranges::copy(dims, params.values);
  params.count = static_cast<int32_t>(dims.size());
  return writer.emit(Builtin::kReshape, {ends.input, writer.tensors().integers(dims)},
                     {ends.output}, params);
}

Status writeConcatenation(OperationWriter& writer) {
  HEARTH_ASSIGN(const ops::ConcatenationParameters p, ops::parseConcatenation(writer.context()));
  std::vector<int32_t> inputs;
  int32_t output = 0;
  for (size_t i = 0; i < p.tensorCount; ++i) {
    HEARTH_ASSIGN(const Ends ends, endsOf(writer, i));
    inputs.push_back(ends.input);
    output = ends.output;
  }
  return writer.emit(Builtin::kConcatenation, std::move(inputs), {output},
                     tflite_abi::ConcatenationParams{static_cast<int32_t>(p.axis), 0});
}

Status writePack(OperationWriter& writer) {
  HEARTH_ASSIGN(const int32_t given, writer.scalar<int32_t>(0, 0));
  HEARTH_ASSIGN(const size_t axis,
                ops::resolveAxis(writer.context(), given, writer.outputTensor(0).rank()));
  std::vector<int32_t> inputs;
  int32_t output = 0;
  for (size_t i = 1; i < writer.inputCount(); ++i) {
    HEARTH_ASSIGN(const Ends ends, endsOf(writer, i));
    inputs.push_back(ends.input);
    output = ends.output;
  }
  const auto count = static_cast<int32_t>(inputs.size());
  return writer.emit(Builtin::kPack, std::move(inputs), {output},
                     tflite_abi::PackParams{count, static_cast<int32_t>(axis)});
}

// Pairs of numbers before and behind each dimension, as a constant.
int32_t paddings(OperationWriter& writer, const ops::PadParameters& p) {
  std::vector<int32_t> values;
  for (size_t i = 0; i < p.before.size(); ++i) {
    values.push_back(static_cast<int32_t>(p.before[i]));
    values.push_back(static_cast<int32_t>(p.after[i]));
  }
  return writer.tensors().matrix(values, 2);
}

Status refuseNoDimensions(const OperationWriter& writer) {
  if (writer.inputTensor(0).rank() != 0) return {};
  return fail(ErrorCode::kUnsupported, "{} of a tensor without dimensions is not expressed.",
              writer.context().describe());
}

Status writePad(OperationWriter& writer) {
  HEARTH_TRY(refuseNoDimensions(writer));
  HEARTH_ASSIGN(const ops::PadParameters p, ops::parsePad(writer.context()));
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  const int32_t amounts = paddings(writer, p);
  if (writer.context().operation->type == OperationType::kPad)
    return writer.emit(Builtin::kPad, {ends.input, amounts}, {ends.output});
  const size_t size = graph::elementSize(writer.inputTensor(0).type());
  const int32_t value = writer.tensors().constantLike(ends.input, {}, {p.value.data(), size});
  return writer.emit(Builtin::kPadV2, {ends.input, amounts, value}, {ends.output});
}

Status writeMirrorPad(OperationWriter& writer) {
  HEARTH_TRY(refuseNoDimensions(writer));
  HEARTH_ASSIGN(const ops::PadParameters p, ops::parsePaddings(writer.context(), 1));
  HEARTH_ASSIGN(const int32_t mode, writer.scalar<int32_t>(2, 0));
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  return writer.emit(Builtin::kMirrorPad, {ends.input, paddings(writer, p)}, {ends.output},
                     tflite_abi::IntParams{mode + 1});
}

Status writeTranspose(OperationWriter& writer) {
  HEARTH_ASSIGN(const ops::TransposeParameters p, ops::parseTranspose(writer.context()));
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  return writer.emit(Builtin::kTranspose,
                     {ends.input, writer.tensors().integers(narrow(p.permutation))}, {ends.output});
}

Status writeSlice(OperationWriter& writer) {
  HEARTH_TRY(refuseNoDimensions(writer));
  HEARTH_ASSIGN(const ops::SliceParameters p, ops::parseSlice(writer.context()));
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  std::vector<int32_t> begins, sizes;
  for (const ops::SliceRange& range : p.ranges) {
    begins.push_back(static_cast<int32_t>(range.begin));
    sizes.push_back(static_cast<int32_t>(range.size));
  }
  return writer.emit(
      Builtin::kSlice,
      {ends.input, writer.tensors().integers(begins), writer.tensors().integers(sizes)},
      {ends.output});
}

Status writeStridedSlice(OperationWriter& writer) {
  tflite_abi::StridedSliceParamsV8 params{};
  HEARTH_ASSIGN(params.first.beginMask, writer.scalar<int32_t>(4, 0));
  HEARTH_ASSIGN(params.first.endMask, writer.scalar<int32_t>(5, 0));
  HEARTH_ASSIGN(params.first.shrinkAxisMask, writer.scalar<int32_t>(6, 0));
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  std::vector<int32_t> inputs = {ends.input};
  for (size_t i = 1; i <= 3; ++i) {
    HEARTH_ASSIGN(const std::vector<int64_t> values, writer.context().intVector(i));
    inputs.push_back(writer.tensors().integers(narrow(values)));
  }
  return writer.emit(Builtin::kStridedSlice, std::move(inputs), {ends.output}, params);
}

Status writeSplit(OperationWriter& writer) {
  HEARTH_ASSIGN(const ops::SplitParameters p, ops::parseSplit(writer.context()));
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  std::vector<int32_t> outputs;
  for (size_t i = 0; i < p.count; ++i) {
    HEARTH_ASSIGN(const int32_t output, writer.output(i));
    outputs.push_back(output);
  }
  const auto axis = static_cast<int32_t>(p.axis);
  return writer.emit(Builtin::kSplit, {writer.tensors().integers({&axis, 1}, true), ends.input},
                     std::move(outputs), tflite_abi::IntParams{static_cast<int32_t>(p.count)});
}

Status writeGather(OperationWriter& writer) {
  HEARTH_ASSIGN(const int32_t axis, writer.scalar<int32_t>(1, 0));
  HEARTH_ASSIGN(const int32_t batches, writer.scalar<int32_t>(3, 0));
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  HEARTH_ASSIGN(const int32_t indices, writer.input(2));
  return writer.emit(Builtin::kGather, {ends.input, indices}, {ends.output},
                     tflite_abi::GatherParams{axis, batches});
}

Status writeGatherNd(OperationWriter& writer) {
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  HEARTH_ASSIGN(const int32_t indices, writer.input(1));
  return writer.emit(Builtin::kGatherNd, {ends.input, indices}, {ends.output});
}

Status writeTile(OperationWriter& writer) {
  HEARTH_ASSIGN(const std::vector<int64_t> multiples, writer.context().intVector(1));
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  return writer.emit(Builtin::kTile, {ends.input, writer.tensors().integers(narrow(multiples))},
                     {ends.output});
}

Status writeBroadcastTo(OperationWriter& writer) {
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  const std::vector<int32_t> dims = writer.tensors().at(ends.output).dims;
  return writer.emit(Builtin::kBroadcastTo, {ends.input, writer.tensors().integers(dims)},
                     {ends.output});
}

Status writeReverse(OperationWriter& writer) {
  HEARTH_ASSIGN(const std::vector<int64_t> axes, writer.context().intVector(1));
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  return writer.emit(Builtin::kReverseV2, {ends.input, writer.tensors().integers(narrow(axes))},
                     {ends.output});
}

template <Builtin kCode>
Status writeSpaceToDepth(OperationWriter& writer) {
  HEARTH_TRY(writer.refuseChannelsFirst(2));
  HEARTH_ASSIGN(const int32_t block, writer.scalar<int32_t>(1, 1));
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  return writer.emit(kCode, {ends.input}, {ends.output}, tflite_abi::IntParams{block});
}

template <Builtin kCode>
Status writeSpaceToBatch(OperationWriter& writer) {
  HEARTH_ASSIGN(const ops::SpaceToBatchParameters p, ops::parseSpaceToBatch(writer.context()));
  constexpr size_t kImageRank = 4;
  if (p.isNchw || writer.inputTensor(0).rank() != kImageRank)
    return fail(ErrorCode::kUnsupported, "{} is expressed for images with channels last only.",
                writer.context().describe());
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  const std::vector<int32_t> blocks = narrow(p.block);
  const std::vector<int32_t> amounts =
      narrow(std::array<uint32_t, 4>{p.before[0], p.after[0], p.before[1], p.after[1]});
  return writer.emit(
      kCode, {ends.input, writer.tensors().integers(blocks), writer.tensors().matrix(amounts, 2)},
      {ends.output});
}

Status writeTopk(OperationWriter& writer) {
  HEARTH_ASSIGN(const int32_t count, ops::parseTopkCount(writer.context()));
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  HEARTH_ASSIGN(const int32_t indices, writer.output(1));
  return writer.emit(Builtin::kTopkV2, {ends.input, writer.tensors().integers({&count, 1}, true)},
                     {ends.output, indices});
}

Status writeDynamicUpdateSlice(OperationWriter& writer) {
  HEARTH_ASSIGN(const bool isRow, writer.scalar<bool>(3, false));
  if (isRow)
    return fail(ErrorCode::kUnsupported,
                "TensorFlow Lite's {} does not check the number of the row that it writes.",
                writer.context().describe());
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  HEARTH_ASSIGN(const int32_t update, writer.input(1));
  HEARTH_ASSIGN(const int32_t begin, writer.input(2));
  return writer.emit(Builtin::kDynamicUpdateSlice, {ends.input, update, begin}, {ends.output});
}

Status writeZerosLike(OperationWriter& writer) {
  HEARTH_ASSIGN(const Ends ends, endsOf(writer));
  return writer.emit(Builtin::kZerosLike, {ends.input}, {ends.output});
}

constexpr OperationEntry kMovingOperations[] = {
    {OperationType::kReshape, writeReshape},
    {OperationType::kSqueeze, writeReshape},
    {OperationType::kExpandDims, writeReshape},
    {OperationType::kConcatenation, writeConcatenation},
    {OperationType::kPack, writePack},
    {OperationType::kPad, writePad},
    {OperationType::kPadV2, writePad},
    {OperationType::kMirrorPad, writeMirrorPad},
    {OperationType::kTranspose, writeTranspose},
    {OperationType::kSlice, writeSlice},
    {OperationType::kStridedSlice, writeStridedSlice},
    {OperationType::kSplit, writeSplit},
    {OperationType::kGather, writeGather},
    {OperationType::kGatherNd, writeGatherNd},
    {OperationType::kTile, writeTile},
    {OperationType::kBroadcastTo, writeBroadcastTo},
    {OperationType::kReverse, writeReverse},
    {OperationType::kSpaceToDepth, writeSpaceToDepth<Builtin::kSpaceToDepth>},
    {OperationType::kDepthToSpace, writeSpaceToDepth<Builtin::kDepthToSpace>},
    {OperationType::kSpaceToBatchNd, writeSpaceToBatch<Builtin::kSpaceToBatchNd>},
    {OperationType::kBatchToSpaceNd, writeSpaceToBatch<Builtin::kBatchToSpaceNd>},
    {OperationType::kTopkV2, writeTopk},
    {OperationType::kDynamicUpdateSlice, writeDynamicUpdateSlice},
    {OperationType::kZerosLike, writeZerosLike},
};

}  // namespace

std::span<const OperationEntry> movingOperations() {
  return kMovingOperations;
}

}  // namespace hearth::drivers::delegate
