// SPDX-License-Identifier: Apache-2.0
// Rows that are taken or written at places which are known only at run time.
#include <cstring>
#include <limits>
#include <utility>

#include "drivers/vulkan/lowering/casts.h"
#include "drivers/vulkan/lowering/copies.h"
#include "drivers/vulkan/lowering/lowering.h"
#include "ops/validation.h"

namespace hearth::vulkan {
namespace {

using graph::OperandType;

constexpr size_t kMostDimensions = 6;

// 32-bit words of an index.
uint32_t wordsOf(const ops::Tensor& indices) {
  return indices.type() == OperandType::kTensorInt64 ? 2 : 1;
}

// Which rows are taken of which blocks, as gather.comp has it.
struct Taking {
  TensorId from = kNoTensor;
  TensorId to = kNoTensor;
  uint64_t rows = 0;  // of the output
  uint32_t rowLength = 1;
  uint32_t taken = 1;
  uint32_t blockRows = 1;
  uint32_t outer = 1;
};

Status addTaking(LoweringContext& context, size_t indexInput, size_t elementBytes,
                 const Taking& taking) {
  HEARTH_ASSIGN(const std::string suffix, context.bitsSuffix(elementBytes));
  HEARTH_ASSIGN(const TensorId fault, context.fault());
  const uint64_t count = taking.rows * taking.rowLength;
  Dispatch dispatch;
  dispatch.shader = "gather." + suffix;
  dispatch.bindings = {
      {taking.from}, {context.inputTensor(indexInput)}, {taking.to, true}, {fault, true}};
  dispatch.parameters = {static_cast<uint32_t>(count),
                         taking.rowLength,
                         taking.taken,
                         taking.blockRows,
                         taking.outer,
                         wordsOf(context.input(indexInput))};
  return context.addRow(std::move(dispatch), count);
}

// The scale of each row of a table.
std::vector<uint8_t> scalesOf(const graph::Operand& table, uint32_t rows) {
  const auto& own = table.perChannel.scales;
  std::vector<float> scales(own.begin(), own.end());
  if (scales.empty()) scales.assign(rows, table.scale);
  std::vector<uint8_t> bytes(scales.size() * sizeof(float));
  std::memcpy(bytes.data(), scales.data(), bytes.size());
  return bytes;
}

// Rows of 8-bit numbers as real ones: both rows and their scales are taken, and multiplied.
Status addRealLookup(LoweringContext& context, Taking taking) {
  const graph::Operand& table = *context.input(1).operand;
  const bool isSigned = table.type == OperandType::kTensorQuant8AsymmSigned ||
                        table.type == OperandType::kTensorQuant8Symm ||
                        table.type == OperandType::kTensorQuant8SymmPerChannel;
  if (!isSigned || table.zeroPoint != 0 || context.operation().hasInput(2))
    return fail(ErrorCode::kUnsupported, "The GPU driver has no {} of {} to {}.",
                graph::nameOf(context.operation().operation->type), graph::nameOf(table.type),
                graph::nameOf(context.output(0).type()));
  const uint64_t count = taking.rows * taking.rowLength;
  const TensorId output = taking.to;
  const TensorId stored = context.addTemporary(count);
  taking.to = stored;
  HEARTH_TRY(addTaking(context, 0, 1, taking));
  const TensorId scales = context.addTemporary(taking.rows * sizeof(float));
  const uint32_t rows = taking.blockRows;
  Taking ofScales = taking;
  ofScales.from = context.addConstant(
      uint64_t{rows} * sizeof(float),
      [&table, rows]() -> Result<std::vector<uint8_t>> { return scalesOf(table, rows); });
  ofScales.to = scales;
  ofScales.rowLength = 1;
  HEARTH_TRY(addTaking(context, 0, sizeof(float), ofScales));
  const TensorId numbers = context.addTemporary(count * sizeof(float));
  HEARTH_TRY(addCast(context, "i8f32", stored, numbers, count));
  // binary.comp: the product of [rows, rowLength] and [rows, 1].
  constexpr uint32_t kMultiply = 2;
  const float unbounded = std::numeric_limits<float>::infinity();
  Dispatch dispatch;
  dispatch.shader = "binary.f32";
  dispatch.constant = kMultiply;
  dispatch.bindings = {{numbers}, {scales}, {output, true}};
  dispatch.parameters = {static_cast<uint32_t>(count),
                         1,
                         1,
                         1,
                         1,
                         static_cast<uint32_t>(taking.rows),
                         taking.rowLength};
  for (const auto& [row, column] : {std::pair(taking.rowLength, 1u), std::pair(1u, 0u)})
    dispatch.parameters.insert(dispatch.parameters.end(), {0, 0, 0, 0, row, column});
  dispatch.parameters.insert(dispatch.parameters.end(), {bitsOf(-unbounded), bitsOf(unbounded)});
  return context.addRow(std::move(dispatch), count);
}

}  // namespace

Status lowerGather(LoweringContext& context) {
  const ops::Tensor& input = context.input(0);
  const ops::Tensor& indices = context.input(2);
  HEARTH_ASSIGN(const int32_t axisArgument, context.operation().scalar<int32_t>(1));
  HEARTH_ASSIGN(const size_t axis,
                ops::resolveAxis(context.operation(), axisArgument, input.rank()));
  HEARTH_ASSIGN(const int32_t shared, context.operation().scalar<int32_t>(3, 0));
  const auto batchRank =
      static_cast<size_t>(shared < 0 ? shared + static_cast<int32_t>(indices.rank()) : shared);
  Taking taking{context.inputTensor(0), context.outputTensor(0)};
  uint32_t batches = 1;
  for (size_t i = 0; i < axis; ++i) (i < batchRank ? batches : taking.outer) *= input.dimensions[i];
  for (size_t i = axis + 1; i < input.rank(); ++i) taking.rowLength *= input.dimensions[i];
  taking.blockRows = input.dimensions[axis];
  taking.taken = static_cast<uint32_t>(indices.elementCount() / batches);
  taking.rows = context.output(0).elementCount() / taking.rowLength;
  return addTaking(context, 2, graph::elementSize(*input.operand), taking);
}

Status lowerEmbeddingLookup(LoweringContext& context) {
  const ops::Tensor& table = context.input(1);
  Taking taking{context.inputTensor(1), context.outputTensor(0)};
  taking.rows = context.input(0).elementCount();
  taking.taken = static_cast<uint32_t>(taking.rows);
  taking.blockRows = table.dimensions[0];
  for (size_t i = 1; i < table.rank(); ++i) taking.rowLength *= table.dimensions[i];
  if (table.type() != context.output(0).type()) return addRealLookup(context, taking);
  return addTaking(context, 0, graph::elementSize(*table.operand), taking);
}

// The data are copied, and the update is written over them.
Status lowerDynamicUpdateSlice(LoweringContext& context) {
  const ops::Tensor& data = context.input(0);
  const ops::Tensor& update = context.input(1);
  const ops::Tensor& begins = context.input(2);
  const size_t bytes = graph::elementSize(*data.operand);
  const size_t rank = data.rank();
  HEARTH_ASSIGN(const bool isRow, context.operation().scalar<bool>(3, false));
  if (isRow)
    return fail(ErrorCode::kUnsupported,
                "{} writes a row, whose number the GPU driver does not check.",
                context.operation().describe());
  if (rank > kMostDimensions)
    return fail(ErrorCode::kUnsupported, "{} has {} dimensions, the GPU driver takes {}.",
                context.operation().describe(), rank, kMostDimensions);
  HEARTH_ASSIGN(const std::string suffix, context.bitsSuffix(bytes));
  const auto all = static_cast<uint32_t>(data.elementCount());
  HEARTH_TRY(
      addCopy(context, bytes, {context.inputTensor(0), context.outputTensor(0), {{all, 1, 1}}}));
  const uint64_t count = update.elementCount();
  Dispatch dispatch;
  dispatch.shader = "update." + suffix;
  dispatch.bindings = {{context.inputTensor(1)},
                       {rank == 0 ? context.inputTensor(1) : context.inputTensor(2)},
                       {context.outputTensor(0), true}};
  dispatch.parameters = {static_cast<uint32_t>(count), static_cast<uint32_t>(rank),
                         wordsOf(begins)};
  const std::vector<int64_t> steps = stepsOf(data.dimensions);
  for (size_t i = 0; i < kMostDimensions; ++i)
    dispatch.parameters.push_back(i < rank ? update.dimensions[i] : 1);
  for (size_t i = 0; i < kMostDimensions; ++i)
    dispatch.parameters.push_back(i < rank ? static_cast<uint32_t>(steps[i]) : 0);
  for (size_t i = 0; i < kMostDimensions; ++i)
    dispatch.parameters.push_back(i < rank ? data.dimensions[i] - update.dimensions[i] : 0);
  return context.addRow(std::move(dispatch), count);
}

}  // namespace hearth::vulkan
