// SPDX-License-Identifier: Apache-2.0
// BATCH_MATMUL and attention: products of matrices, of which both are data.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "drivers/vulkan/lowering/casts.h"
#include "drivers/vulkan/lowering/copies.h"
#include "drivers/vulkan/lowering/factors.h"
#include "drivers/vulkan/lowering/lowering.h"
#include "drivers/vulkan/lowering/tables.h"
#include "drivers/vulkan/plan/products.h"
#include "ops/batch_matmul.h"
#include "ops/scaled_dot_product_attention.h"

namespace hearth::vulkan {
namespace {

using graph::OperandType;

constexpr size_t kLoops = 3;

// One loop over products of matrices. Steps count elements.
struct Loop {
  uint32_t size = 1;
  uint32_t left = 0, right = 0, output = 0;
};

// Products of matrices, as matmul.comp has them.
struct Products {
  TensorId left = kNoTensor, right = kNoTensor, output = kNoTensor;
  uint32_t rows = 1, depth = 1, columns = 1;
  uint32_t leftRow = 0, leftDepth = 0, rightDepth = 0, rightColumn = 0;
  uint32_t outputRow = 0, outputColumn = 1;
  std::vector<Loop> loops;  // the outermost first
};

// Joins loops in which all sides go on alike.
std::vector<Loop> joined(const std::vector<Loop>& loops) {
  std::vector<Loop> simple;
  for (const Loop& loop : loops) {
    if (loop.size == 1) continue;
    if (!simple.empty()) {
      Loop& outer = simple.back();
      if (outer.left == loop.left * loop.size && outer.right == loop.right * loop.size &&
          outer.output == loop.output * loop.size) {
        outer = {outer.size * loop.size, loop.left, loop.right, loop.output};
        continue;
      }
    }
    simple.push_back(loop);
  }
  return simple;
}

// `factor` holds what sums are multiplied by; `limits` are the zero points of left, right and
// output and the least and greatest result, which count for quantised numbers.
Status addProducts(LoweringContext& context, const std::string& suffix, const Products& products,
                   TensorId factor, const std::array<int32_t, 5>& limits) {
  std::vector<Loop> loops = joined(products.loops);
  if (loops.size() > kLoops)
    return fail(ErrorCode::kUnsupported,
                "{} repeats products along {} dimensions, the GPU driver "
                "takes {}.",
                context.operation().describe(), loops.size(), kLoops);
  loops.insert(loops.begin(), kLoops - loops.size(), Loop{});
  uint32_t count = 1;
  for (const Loop& loop : loops) count *= loop.size;
  Dispatch dispatch;
  dispatch.shader = "matmul." + suffix;
  dispatch.bindings = {{products.left}, {products.right}, {products.output, true}, {factor}};
  dispatch.parameters = {products.rows,        products.depth,     products.columns,
                         products.leftRow,     products.leftDepth, products.rightDepth,
                         products.rightColumn, products.outputRow, products.outputColumn,
                         loops[1].size,        loops[2].size};
  for (const uint32_t Loop::* side : {&Loop::left, &Loop::right, &Loop::output})
    for (const Loop& loop : loops) dispatch.parameters.push_back(loop.*side);
  for (const int32_t limit : limits) dispatch.parameters.push_back(bitsOf(limit));
  dispatch.groups = {productGroups(products.rows), productGroups(products.columns), count};
  dispatch.products = uint64_t{count} * products.rows * products.columns * products.depth;
  return context.add(std::move(dispatch));
}

// A constant float32 number.
TensorId addNumber(LoweringContext& context, float number) {
  return context.addConstant(sizeof number, [number]() -> Result<std::vector<uint8_t>> {
    std::vector<uint8_t> bytes(sizeof number);
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
  });
}

// Loops over the leading dimensions of a product, of which an input may lack some or repeat them.
std::vector<Loop> batchLoops(const ops::BatchMatmulParameters& p) {
  const size_t rank = p.outputBatches.size();
  const auto stepsIn = [rank](const ops::Dimensions& batches, uint32_t elements) {
    std::vector<uint32_t> steps(rank, 0);
    for (size_t i = batches.size(); i-- > 0;) {
      if (batches[i] != 1) steps[i + rank - batches.size()] = elements;
      elements *= batches[i];
    }
    return steps;
  };
  const std::vector<uint32_t> left = stepsIn(p.leftBatches, p.rows * p.depth);
  const std::vector<uint32_t> right = stepsIn(p.rightBatches, p.depth * p.columns);
  const std::vector<uint32_t> output = stepsIn(p.outputBatches, p.rows * p.columns);
  std::vector<Loop> loops;
  for (size_t i = 0; i < rank; ++i)
    loops.push_back({p.outputBatches[i], left[i], right[i], output[i]});
  return loops;
}

// The data of an attention as float32 numbers.
Result<TensorId> realInput(LoweringContext& context, size_t index) {
  const ops::Tensor& input = context.input(index);
  if (input.type() == OperandType::kTensorFloat32) return context.inputTensor(index);
  const TensorId wide = context.addTemporary(input.elementCount() * sizeof(float));
  HEARTH_TRY(addWidening(context, context.inputTensor(index), wide, input.elementCount()));
  return wide;
}

// products = cap * tanh(products / cap).
Status addSoftCap(LoweringContext& context, TensorId from, TensorId to, uint64_t count, float cap) {
  constexpr uint32_t kSoftCap = 18;  // of unary.comp
  Dispatch dispatch;
  dispatch.shader = "unary.f32";
  dispatch.constant = kSoftCap;
  dispatch.bindings = {{from}, {to, true}};
  dispatch.parameters = {static_cast<uint32_t>(count), bitsOf(cap), 0};
  return context.addRow(std::move(dispatch), count);
}

// sums = products + mask, which is broadcast to [batches, heads, queries, keys].
Status addMask(LoweringContext& context, const ops::AttentionParameters& p, TensorId products,
               TensorId mask, TensorId sums) {
  constexpr uint32_t kAdd = 0;  // of binary.comp
  const float unbounded = std::numeric_limits<float>::infinity();
  const ops::Dimensions whole = {p.batches, p.heads, p.queries, p.keys};
  const ops::Dimensions& given = context.input(3).dimensions;
  const std::vector<int64_t> own = stepsOf(given);
  const std::vector<int64_t> all = stepsOf(whole);
  std::vector<uint32_t> steps(whole.size(), 0);
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i] != 1) steps[i + whole.size() - given.size()] = static_cast<uint32_t>(own[i]);
  const uint64_t count = uint64_t{p.batches} * p.heads * p.queries * p.keys;
  Dispatch dispatch;
  dispatch.shader = "binary.f32";
  dispatch.constant = kAdd;
  dispatch.bindings = {{products}, {mask}, {sums, true}};
  // Shapes are padded in front to rank 6.
  dispatch.parameters = {static_cast<uint32_t>(count), 1, 1};
  dispatch.parameters.insert(dispatch.parameters.end(), whole.begin(), whole.end());
  dispatch.parameters.insert(dispatch.parameters.end(), {0, 0});
  for (const int64_t step : all) dispatch.parameters.push_back(static_cast<uint32_t>(step));
  dispatch.parameters.insert(dispatch.parameters.end(), {0, 0});
  dispatch.parameters.insert(dispatch.parameters.end(), steps.begin(), steps.end());
  dispatch.parameters.insert(dispatch.parameters.end(), {bitsOf(-unbounded), bitsOf(unbounded)});
  return context.addRow(std::move(dispatch), count);
}

}  // namespace

Status lowerBatchMatmul(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::BatchMatmulParameters p, ops::parseBatchMatmul(context.operation()));
  const graph::Operand& left = *context.input(0).operand;
  const graph::Operand& right = *context.input(1).operand;
  const graph::Operand& output = *context.output(0).operand;
  HEARTH_ASSIGN(const std::string suffix, context.numberSuffix(left.type));
  if (right.type != left.type)
    return fail(ErrorCode::kUnsupported, "The GPU driver has no BATCH_MATMUL of {} and {}.",
                graph::nameOf(left.type), graph::nameOf(right.type));
  Products products{context.inputTensor(0), context.inputTensor(1), context.outputTensor(0)};
  products.rows = p.rows;
  products.depth = p.depth;
  products.columns = p.columns;
  products.leftRow = p.isLeftTransposed ? 1 : p.depth;
  products.leftDepth = p.isLeftTransposed ? p.rows : 1;
  products.rightDepth = p.isRightTransposed ? 1 : p.columns;
  products.rightColumn = p.isRightTransposed ? p.depth : 1;
  products.outputRow = p.columns;
  products.loops = batchLoops(p);
  if (!graph::isQuantized(left.type))
    return addProducts(context, suffix, products, addNumber(context, 1.0f), {});
  const TensorId factor =
      context.addConstant(kFactorBytes, [&left, &right, &output]() -> Result<std::vector<uint8_t>> {
        return factorBytes({left.scale / double{output.scale} * right.scale});
      });
  const int32_t lowest = lowestStored(output.type);
  return addProducts(context, suffix, products, factor,
                     {left.zeroPoint, right.zeroPoint, output.zeroPoint, lowest, lowest + 255});
}

Status lowerAttention(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::AttentionParameters p, ops::parseAttention(context.operation()));
  HEARTH_TRY(context.numberSuffix(context.input(0).type()));
  HEARTH_ASSIGN(const TensorId queries, realInput(context, 0));
  HEARTH_ASSIGN(const TensorId keys, realInput(context, 1));
  HEARTH_ASSIGN(const TensorId values, realInput(context, 2));
  const uint32_t shared = p.heads / p.groups;  // heads of each group of keys
  const uint64_t count = uint64_t{p.batches} * p.heads * p.queries * p.keys;
  const auto addScores = [&] {
    return context.addTemporary(count * sizeof(float));
  };

  // [batches, heads, queries, keys].
  TensorId scores = addScores();
  Products products{queries, keys, scores, p.queries, p.size, p.keys};
  products.leftRow = p.heads * p.size;
  products.leftDepth = 1;
  products.rightDepth = 1;
  products.rightColumn = p.groups * p.size;
  products.outputRow = p.keys;
  const uint32_t square = p.queries * p.keys;
  products.loops = {
      {p.batches, p.queries * p.heads * p.size, p.keys * p.groups * p.size, p.heads * square},
      {p.groups, shared * p.size, p.size, shared * square},
      {shared, p.size, 0, square}};
  HEARTH_TRY(addProducts(context, "f32", products, addNumber(context, p.scale), {}));
  if (p.logitCap > 0.0f) {
    const TensorId capped = addScores();
    HEARTH_TRY(addSoftCap(context, scores, capped, count, p.logitCap));
    scores = capped;
  }
  if (context.operation().hasInput(3)) {
    HEARTH_ASSIGN(const TensorId mask, realInput(context, 3));
    const TensorId masked = addScores();
    HEARTH_TRY(addMask(context, p, scores, mask, masked));
    scores = masked;
  }
  const TensorId weights = addScores();
  const auto rows = static_cast<uint32_t>(count / p.keys);
  Dispatch softmax;
  softmax.shader = "softmax.f32";
  softmax.bindings = {{scores}, {weights, true}};
  softmax.parameters = {rows, p.keys, 1, bitsOf(1.0f)};
  HEARTH_TRY(context.addRows(std::move(softmax), rows));

  const bool isHalf = context.output(0).type() == OperandType::kTensorFloat16;
  const uint64_t results = context.output(0).elementCount();
  const TensorId output =
      isHalf ? context.addTemporary(results * sizeof(float)) : context.outputTensor(0);
  Products sums{weights, values, output, p.queries, p.keys, p.valueSize};
  sums.leftRow = p.keys;
  sums.leftDepth = 1;
  sums.rightDepth = p.groups * p.valueSize;
  sums.rightColumn = 1;
  sums.outputRow = p.heads * p.valueSize;
  sums.loops = {{p.batches, p.heads * square, p.keys * p.groups * p.valueSize,
                 p.queries * p.heads * p.valueSize},
                {p.groups, shared * square, p.valueSize, shared * p.valueSize},
                {shared, square, 0, p.valueSize}};
  HEARTH_TRY(addProducts(context, "f32", sums, addNumber(context, 1.0f), {}));
  if (!isHalf) return {};
  return addNarrowing(context, output, context.outputTensor(0), results);
}

}  // namespace hearth::vulkan
