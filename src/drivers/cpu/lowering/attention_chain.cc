// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/attention_chain.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "drivers/cpu/lowering/attention.h"
#include "drivers/cpu/lowering/operation_context.h"
#include "drivers/cpu/lowering/repeated_tensor.h"
#include "ops/activation.h"
#include "ops/softmax.h"

namespace hearth::cpu {
namespace {

using graph::Dimensions;
using graph::OperandType;
using graph::OperationType;

// What SELECT_V2 takes in place of a hidden product is at most this: soft-max makes 0 of it where a
// product that counts is above -8,088. Exporters write -10,000, or what masks of numbers have.
constexpr float kHidingNumber = -8192.0f;

uint64_t countOf(const Dimensions& dimensions) {
  uint64_t count = 1;
  for (const uint32_t dimension : dimensions) count *= dimension;
  return count;
}

// What is known of a chain while it is followed from its end to its beginning.
struct Chain {
  uint32_t keys = 0;  // how many
  float scale = 1.0f;
  float cap = 0.0f;  // 0 = none
  uint32_t queryOperand = 0, keyOperand = 0;
  uint32_t maskOperand = UINT32_MAX;
  MaskKind maskKind = MaskKind::kSum;
  bool isUniformWhereHidden = false;
  Dimensions masked;  // of the products, where the mask is applied to them
  ops::BatchMatmulParameters first;
  std::vector<uint32_t> operations;  // all but the last one
};

class ChainReader {
 public:
  explicit ChainReader(PlanBuilder* builder) : builder_(*builder) {}

  // The chain that ends with these weights of the values.
  Result<std::optional<Chain>> read(uint32_t weights, uint32_t keys) {
    Chain chain;
    chain.keys = keys;
    uint32_t operand = throughReshapes(&chain, weights);
    const std::optional<uint32_t> softmax = writerOf(operand, OperationType::kSoftmax);
    if (!softmax) return std::nullopt;
    HEARTH_ASSIGN(const ops::SoftmaxParameters parameters,
                  ops::parseSoftmax(contextOf(builder_, *softmax)));
    const Dimensions& dimensions = builder_.tensor(operand).dimensions;
    if (parameters.beta != 1.0f || parameters.axis + 1 != dimensions.size() ||
        dimensions.back() != keys)
      return std::nullopt;
    chain.operations.push_back(*softmax);
    operand = throughReshapes(&chain, builder_.operation(*softmax).inputs[0]);
    if (const std::optional<uint32_t> choice = writerOf(operand, OperationType::kSelectV2))
      return readChoice(std::move(chain), *choice, operand);
    const std::optional<uint32_t> sum = writerOf(operand, OperationType::kAdd);
    if (!sum) return readProducts(std::move(chain), operand);
    HEARTH_ASSIGN(const bool isClamped, hasActivation(*sum));
    if (isClamped) return std::nullopt;
    chain.operations.push_back(*sum);
    chain.masked = builder_.tensor(operand).dimensions;
    for (const size_t i : {0, 1}) {
      const uint32_t products = builder_.operation(*sum).inputs[i];
      const uint32_t mask = builder_.operation(*sum).inputs[1 - i];
      if (builder_.tensor(products).dimensions != chain.masked || !isFloat(mask)) continue;
      chain.maskOperand = mask;
      HEARTH_ASSIGN(std::optional<Chain> found, readProducts(chain, products));
      if (found) return found;
    }
    return std::nullopt;
  }

 private:
  bool isFloat(uint32_t operand) const {
    return builder_.operand(operand).type == OperandType::kTensorFloat32;
  }

  // The operation of that type whose result nothing but the chain reads.
  std::optional<uint32_t> writerOf(uint32_t operand, OperationType type) const {
    const std::optional<uint32_t> writer = builder_.producer(operand);
    if (!writer || builder_.operation(*writer).type != type || !isFloat(operand) ||
        builder_.isGraphOutput(operand) || builder_.consumers(operand).size() != 1 ||
        builder_.constants().isWeight(operand) || builder_.isReferenceOnly(*writer))
      return std::nullopt;
    // Another operation may compute it.
    if (!isReshape(type) && !builder_.hasNode(*writer)) return std::nullopt;
    return writer;
  }

  static bool isReshape(OperationType type) {
    return type == OperationType::kReshape || type == OperationType::kSqueeze ||
           type == OperationType::kExpandDims;
  }

  // The tensor that changes of shape, none of which divides rows, make the operand of.
  uint32_t throughReshapes(Chain* chain, uint32_t operand) const {
    for (;;) {
      std::optional<uint32_t> writer;
      for (const OperationType type :
           {OperationType::kReshape, OperationType::kSqueeze, OperationType::kExpandDims})
        if (!writer) writer = writerOf(operand, type);
      if (!writer) return operand;
      const uint32_t source = builder_.operation(*writer).inputs[0];
      const Dimensions& dimensions = builder_.tensor(source).dimensions;
      if (dimensions.empty() || dimensions.back() != chain->keys) return operand;
      chain->operations.push_back(*writer);
      operand = source;
    }
  }

  Result<bool> hasActivation(uint32_t operation) const {
    HEARTH_ASSIGN(const ops::FusedActivation activation,
                  ops::parseActivation(contextOf(builder_, operation), 2));
    return activation != ops::FusedActivation::kNone;
  }

  // The chain behind a SELECT_V2 that takes a product where the mask says so, and else a number
  // that soft-max makes 0 of.
  Result<std::optional<Chain>> readChoice(Chain chain, uint32_t choice, uint32_t operand) {
    const std::vector<uint32_t>& inputs = builder_.operation(choice).inputs;
    const size_t hiding = numberOf(inputs[2]) ? 2 : 1;
    const std::optional<float> hidden = numberOf(inputs[hiding]);
    const uint32_t products = inputs[3 - hiding];
    chain.masked = builder_.tensor(operand).dimensions;
    if (!hidden || !(*hidden <= kHidingNumber) ||
        builder_.tensor(products).dimensions != chain.masked)
      return std::nullopt;
    chain.operations.push_back(choice);
    chain.maskOperand = inputs[0];
    chain.maskKind = hiding == 2 ? MaskKind::kOpenWhereTrue : MaskKind::kOpenWhereFalse;
    chain.isUniformWhereHidden = std::isfinite(*hidden);
    return readProducts(std::move(chain), products);
  }

  // The number in a constant; none in a larger one.
  std::optional<float> numberOf(uint32_t operand) const {
    if (!builder_.constants().hasElements(operand) ||
        builder_.tensor(operand).elementCount() != 1 || !isFloat(operand))
      return std::nullopt;
    return *reinterpret_cast<const float*>(builder_.constants().elements(operand));
  }

  // Goes to the tensor that a sum adds 0 to.
  Result<bool> throughZero(Chain* chain, uint32_t* operand) {
    const std::optional<uint32_t> sum = writerOf(*operand, OperationType::kAdd);
    if (!sum) return false;
    HEARTH_ASSIGN(const bool isClamped, hasActivation(*sum));
    if (isClamped) return false;
    const std::vector<uint32_t>& inputs = builder_.operation(*sum).inputs;
    for (const size_t i : {0, 1}) {
      if (builder_.tensor(inputs[i]).dimensions != builder_.tensor(*operand).dimensions ||
          !isComputedZero(&builder_, inputs[1 - i]))
        continue;
      chain->operations.push_back(*sum);
      *operand = inputs[i];
      return true;
    }
    return false;
  }

  // By what multiplications and divisions multiply the tensor before them, which `operand` is
  // afterwards.
  Result<float> throughFactors(Chain* chain, uint32_t* operand) {
    float all = 1.0f;
    for (;;) {
      *operand = throughReshapes(chain, *operand);
      HEARTH_ASSIGN(const bool isZeroAdded, throughZero(chain, operand));
      if (isZeroAdded) continue;
      std::optional<uint32_t> scaled = writerOf(*operand, OperationType::kMul);
      const bool isQuotient = !scaled;
      if (!scaled) scaled = writerOf(*operand, OperationType::kDiv);
      if (!scaled) return all;
      HEARTH_ASSIGN(const bool isClamped, hasActivation(*scaled));
      const std::vector<uint32_t>& inputs = builder_.operation(*scaled).inputs;
      const size_t position = isQuotient || numberOf(inputs[1]) ? 1 : 0;
      const std::optional<float> factor = numberOf(inputs[position]);
      if (isClamped || !factor) return all;
      const float product = isQuotient ? all / *factor : all * *factor;
      // A product of factors that overflows is not what one after the other gives.
      if (!std::isnormal(product)) return all;
      all = product;
      chain->operations.push_back(*scaled);
      *operand = inputs[1 - position];
    }
  }

  // The products of queries and keys, their scale and their cap.
  Result<std::optional<Chain>> readProducts(Chain chain, uint32_t operand) {
    HEARTH_ASSIGN(chain.scale, throughFactors(&chain, &operand));
    if (const std::optional<uint32_t> bounded = writerOf(operand, OperationType::kTanh)) {
      if (chain.scale <= 0.0f) return std::nullopt;
      chain.cap = chain.scale;
      chain.operations.push_back(*bounded);
      operand = builder_.operation(*bounded).inputs[0];
      HEARTH_ASSIGN(const float scale, throughFactors(&chain, &operand));
      chain.scale = scale * chain.cap;
      if (!std::isnormal(chain.scale)) return std::nullopt;
    }
    const std::optional<uint32_t> product = writerOf(operand, OperationType::kBatchMatmul);
    if (!product) return std::nullopt;
    HEARTH_ASSIGN(chain.first, ops::parseBatchMatmul(contextOf(builder_, *product)));
    chain.queryOperand = builder_.operation(*product).inputs[0];
    chain.keyOperand = builder_.operation(*product).inputs[1];
    if (chain.first.isLeftTransposed || chain.first.columns != chain.keys ||
        !isFloat(chain.queryOperand) || !isFloat(chain.keyOperand))
      return std::nullopt;
    chain.operations.push_back(*product);
    return chain;
  }

  PlanBuilder& builder_;
};

// Of each left matrix of a product, which matrix of `right` it is multiplied with; empty where left
// matrices are repeated.
std::vector<uint32_t> rightMatrices(const ops::BatchMatmulParameters& product,
                                    const RepeatedTensor& right) {
  if (countOf(product.leftBatches) != countOf(product.outputBatches)) return {};
  Dimensions matrices = product.outputBatches;
  Dimensions batches = product.rightBatches;
  matrices.push_back(1);
  batches.push_back(1);
  std::vector<uint32_t> found = repeatedRows(matrices, batches);
  for (uint32_t& matrix : found) matrix = right.parts[matrix];
  return found;
}

// Divides the rows into groups that share keys and values; false where that cannot be done.
bool divideRows(const Chain& chain, const ops::BatchMatmulParameters& last,
                const RepeatedTensor& keyTensor, const RepeatedTensor& valueTensor,
                AttentionLayout* layout) {
  const ops::BatchMatmulParameters& first = chain.first;
  const std::vector<uint32_t> keys = rightMatrices(first, keyTensor);
  const std::vector<uint32_t> values = rightMatrices(last, valueTensor);
  if (keys.empty() || values.empty() || keys.size() * first.rows != values.size() * last.rows)
    return false;
  // So many rows have one matrix of keys and one of values; neighbours may have the same ones.
  const size_t unit = std::gcd(first.rows, last.rows);
  const size_t units = keys.size() * first.rows / unit;
  const auto matricesOf = [&](size_t index) {
    return std::pair(keys[index * unit / first.rows], values[index * unit / last.rows]);
  };
  size_t together = 1;
  while (together < units && matricesOf(together) == matricesOf(0)) ++together;
  if (units % together != 0) together = 1;
  for (size_t i = 0; i < units && together > 1; ++i)
    if (matricesOf(i) != matricesOf(i / together * together)) together = 1;
  layout->rowsPerGroup = together * unit;
  for (size_t i = 0; i < units; i += together) {
    const auto [key, value] = matricesOf(i);
    layout->keyOffsets.push_back(key * size_t{first.columns} * first.depth);
    layout->valueOffsets.push_back(value * size_t{last.depth} * last.columns);
    layout->firstPlaces.push_back(i * unit);
  }
  layout->keyStride = first.depth;
  layout->areValuesTransposed = last.isRightTransposed != valueTensor.areTransposed;
  layout->valueStride = layout->areValuesTransposed ? last.depth : last.columns;
  return true;
}

// Adds operations that repeat a tensor to those of the chain, as far as nothing else reads their
// results.
void takeRepetition(const PlanBuilder& builder, const RepeatedTensor& tensor, Chain* chain) {
  for (const uint32_t operation : tensor.operations) {
    // The nodes of other layers may read the result, or have been replaced like this one's.
    if (!builder.isUnread(builder.operation(operation).outputs[0], chain->operations)) return;
    chain->operations.push_back(operation);
  }
}

// The mask with each row once; none where the chain has no mask.
Result<std::optional<RepeatedTensor>> readMask(PlanBuilder* builder, const Chain& chain,
                                               AttentionLayout* layout) {
  if (chain.maskOperand == UINT32_MAX) return std::nullopt;
  RepeatedTensor mask{.operand = chain.maskOperand};
  const Dimensions& given = builder->tensor(chain.maskOperand).dimensions;
  std::vector<uint32_t> rows = repeatedRows(chain.masked, given);
  if (!given.empty()) {
    HEARTH_ASSIGN(mask, findRepeated(builder, chain.maskOperand, 1));
    for (uint32_t& row : rows) row = mask.parts[row];
  }
  setMask(layout, builder->tensor(mask.operand).dimensions, std::move(rows));
  layout->maskKind = chain.maskKind;
  layout->isUniformWhereHidden = chain.isUniformWhereHidden;
  layout->mask = builder->read(mask.operand);
  return mask;
}

}  // namespace

Result<bool> addAttentionChain(PlanBuilder* builder, const ops::BatchMatmulParameters& last) {
  const graph::Operation& operation = *builder->context().operation;
  const uint32_t given = operation.inputs[1];
  // What of float16 tensors is computed in float32 is rounded after each operation.
  if (last.isLeftTransposed || builder->operand(given).type != OperandType::kTensorFloat32 ||
      builder->isWide(given))
    return false;
  HEARTH_ASSIGN(std::optional<Chain> chain,
                ChainReader(builder).read(operation.inputs[0], last.depth));
  if (!chain) return false;
  HEARTH_ASSIGN(const RepeatedTensor keys, findRepeated(builder, chain->keyOperand, 2));
  HEARTH_ASSIGN(const RepeatedTensor values, findRepeated(builder, given, 2));
  // Whole keys follow each other.
  if (keys.areTransposed == chain->first.isRightTransposed) return false;
  AttentionLayout layout;
  if (!divideRows(*chain, last, keys, values, &layout)) return false;
  layout.parameters.size = chain->first.depth;
  layout.parameters.keys = chain->keys;
  layout.parameters.valueSize = last.columns;
  layout.parameters.scale = chain->scale;
  layout.parameters.logitCap = chain->cap;
  HEARTH_ASSIGN(const std::optional<RepeatedTensor> mask, readMask(builder, *chain, &layout));
  for (const uint32_t operand : {chain->queryOperand, keys.operand, values.operand})
    builder->keep(operand);
  if (mask) builder->keep(mask->operand);
  for (const RepeatedTensor* const repeated : {&keys, &values})
    takeRepetition(*builder, *repeated, &*chain);
  if (mask) takeRepetition(*builder, *mask, &*chain);
  builder->withdraw(chain->operations);
  layout.queries = builder->read(chain->queryOperand);
  layout.keys = builder->read(keys.operand);
  layout.values = builder->read(values.operand);
  layout.output = builder->write(operation.outputs[0]);
  addAttentionNode(builder, std::move(layout));
  return true;
}

}  // namespace hearth::cpu
