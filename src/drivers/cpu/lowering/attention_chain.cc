// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/attention_chain.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "drivers/cpu/lowering/attention.h"
#include "drivers/cpu/microkernels/portable/attention_block.h"
#include "ops/activation.h"
#include "ops/concatenation.h"
#include "ops/softmax.h"

namespace hearth::cpu {
namespace {

using graph::Dimensions;
using graph::OperandType;
using graph::OperationType;

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
    HEARTH_ASSIGN(const ops::SoftmaxParameters parameters, ops::parseSoftmax(contextOf(*softmax)));
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

  ops::OperationContext contextOf(uint32_t operation) const {
    ops::OperationContext context =
        ops::makeContext(builder_.model(), builder_.subgraph(), builder_.operation(operation));
    for (size_t i = 0; i < context.inputs.size(); ++i) {
      const ops::Tensor& known = builder_.tensor(context.operation->inputs[i]);
      context.inputs[i].dimensions = known.dimensions;
      context.inputs[i].hasKnownShape = known.hasKnownShape;
    }
    return context;
  }

  Result<bool> hasActivation(uint32_t operation) const {
    HEARTH_ASSIGN(const ops::FusedActivation activation,
                  ops::parseActivation(contextOf(operation), 2));
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
    if (!hidden || !(*hidden <= -kHidingDistance) ||
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

  // By what multiplications and divisions multiply the tensor before them, which `operand` is
  // afterwards.
  Result<float> throughFactors(Chain* chain, uint32_t* operand) {
    float all = 1.0f;
    for (;;) {
      *operand = throughReshapes(chain, *operand);
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
    HEARTH_ASSIGN(chain.first, ops::parseBatchMatmul(contextOf(*product)));
    chain.queryOperand = builder_.operation(*product).inputs[0];
    chain.keyOperand = builder_.operation(*product).inputs[1];
    if (chain.first.isLeftTransposed || !chain.first.isRightTransposed ||
        chain.first.columns != chain.keys || !isFloat(chain.queryOperand) ||
        !isFloat(chain.keyOperand))
      return std::nullopt;
    chain.operations.push_back(*product);
    return chain;
  }

  PlanBuilder& builder_;
};

// Of each left matrix of a product, the right matrix that it is multiplied with; empty where left
// matrices are repeated.
std::vector<uint32_t> rightMatrices(const ops::BatchMatmulParameters& product) {
  if (countOf(product.leftBatches) != countOf(product.outputBatches)) return {};
  Dimensions matrices = product.outputBatches;
  Dimensions right = product.rightBatches;
  matrices.push_back(1);
  right.push_back(1);
  return repeatedRows(matrices, right);
}

// Divides the rows into groups that share keys and values; false where that cannot be done.
bool divideRows(const Chain& chain, const ops::BatchMatmulParameters& last,
                AttentionLayout* layout) {
  const ops::BatchMatmulParameters& first = chain.first;
  const std::vector<uint32_t> keys = rightMatrices(first);
  const std::vector<uint32_t> values = rightMatrices(last);
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
  layout->areValuesTransposed = last.isRightTransposed;
  layout->valueStride = last.isRightTransposed ? last.depth : last.columns;
  return true;
}

// The tensor that a mask repeats along its first dimensions, where heads that share keys have the
// same mask; the mask itself if it does not.
Result<uint32_t> repeatedMask(const PlanBuilder& builder, uint32_t mask) {
  const std::optional<uint32_t> writer = builder.producer(mask);
  if (!writer || builder.operation(*writer).type != OperationType::kConcatenation ||
      builder.constants().isWeight(mask))
    return mask;
  ops::OperationContext context =
      ops::makeContext(builder.model(), builder.subgraph(), builder.operation(*writer));
  const std::vector<uint32_t>& inputs = context.operation->inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    context.inputs[i].dimensions = builder.tensor(inputs[i]).dimensions;
    context.inputs[i].hasKnownShape = builder.tensor(inputs[i]).hasKnownShape;
  }
  HEARTH_ASSIGN(const ops::ConcatenationParameters parameters, ops::parseConcatenation(context));
  const bool isRepeated =
      parameters.axis + 1 != parameters.dimensions.size() &&
      std::all_of(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(parameters.tensorCount),
                  [&](uint32_t input) { return input == inputs[0]; });
  return isRepeated ? inputs[0] : mask;
}

}  // namespace

Result<bool> addAttentionChain(PlanBuilder* builder, const ops::BatchMatmulParameters& last) {
  const graph::Operation& operation = *builder->context().operation;
  const uint32_t values = operation.inputs[1];
  // What of float16 tensors is computed in float32 is rounded after each operation.
  if (last.isLeftTransposed || builder->operand(values).type != OperandType::kTensorFloat32 ||
      builder->isWide(values))
    return false;
  HEARTH_ASSIGN(std::optional<Chain> chain,
                ChainReader(builder).read(operation.inputs[0], last.depth));
  AttentionLayout layout;
  if (!chain || !divideRows(*chain, last, &layout)) return false;
  layout.parameters.size = chain->first.depth;
  layout.parameters.keys = chain->keys;
  layout.parameters.valueSize = last.columns;
  layout.parameters.scale = chain->scale;
  layout.parameters.logitCap = chain->cap;
  if (chain->maskOperand != UINT32_MAX) {
    HEARTH_ASSIGN(const uint32_t mask, repeatedMask(*builder, chain->maskOperand));
    const Dimensions& dimensions = builder->tensor(mask).dimensions;
    setMask(&layout, dimensions, repeatedRows(chain->masked, dimensions));
    layout.maskKind = chain->maskKind;
    layout.isUniformWhereHidden = chain->isUniformWhereHidden;
    layout.mask = builder->read(mask);
    // The nodes of other layers may read the whole mask, or have been replaced like this one's.
    const std::vector<uint32_t>& readers = builder->consumers(chain->maskOperand);
    const auto isReplaced = [&](uint32_t reader) {
      return builder->isWithdrawn(reader) ||
             std::ranges::find(chain->operations, reader) != chain->operations.end();
    };
    if (mask != chain->maskOperand && !builder->isGraphOutput(chain->maskOperand) &&
        std::ranges::all_of(readers, isReplaced))
      chain->operations.push_back(*builder->producer(chain->maskOperand));
  }
  builder->withdraw(chain->operations);
  layout.queries = builder->read(chain->queryOperand);
  layout.keys = builder->read(chain->keyOperand);
  layout.values = builder->read(values);
  layout.output = builder->write(operation.outputs[0]);
  addAttentionNode(builder, std::move(layout));
  return true;
}

}  // namespace hearth::cpu
