// SPDX-License-Identifier: Apache-2.0
// SCALED_DOT_PRODUCT_ATTENTION of the extension: soft-max(scale * q * k^T + mask) * v for each
// head. Inputs: queries, keys, values, mask (added to the products; broadcast to [batches, heads,
// queries, keys]; may be omitted), scale, limit of the products (0: none).
#include "ops/scaled_dot_product_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/broadcast.h"
#include "ops/convolution.h"
#include "ops/registry.h"
#include "ops/strided_copy.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

enum Input : size_t { kQueries, kKeys, kValues, kMask, kScale, kLogitCap, kInputCount };

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(kInputCount, 1));
  HEARTH_TRY(signature.inputType(kQueries, kFloatTensors));
  for (const size_t i : {kKeys, kValues}) HEARTH_TRY(signature.inputTypeLike(i, kQueries));
  HEARTH_TRY(signature.optionalInputTypeLike(kMask, kQueries));
  for (const size_t i : {kQueries, kKeys, kValues}) HEARTH_TRY(signature.inputRank(i, 4, 4));
  HEARTH_TRY(signature.inputRank(kMask, 0, 4));
  for (const size_t i : {kScale, kLogitCap}) HEARTH_TRY(signature.floatScalar(i, kQueries));
  return signature.outputTypeLike(0, kQueries);
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const AttentionParameters p, parseAttention(context));
  return context.setOutputDimensions(0, {p.batches, p.queries, p.heads, p.valueSize});
}

// Strides of the mask along each of [batches, heads, queries, keys].
std::vector<int64_t> maskStrides(const OperationContext& context) {
  std::vector<int64_t> strides(4, 0);
  const Dimensions& mask = context.inputs[kMask].dimensions;
  const std::vector<int64_t> own = rowMajorStrides(mask);
  for (size_t i = 0; i < mask.size(); ++i) strides[i + 4 - mask.size()] = mask[i] == 1 ? 0 : own[i];
  return strides;
}

// In place. A row in which the mask leaves nothing becomes NaN, as the formula gives it.
void softmax(std::vector<float>* logits) {
  float highest = -std::numeric_limits<float>::infinity();
  for (const float logit : *logits) highest = std::max(highest, logit);
  double sum = 0.0;
  for (float& logit : *logits) {
    logit = std::exp(logit - highest);
    sum += logit;
  }
  for (float& logit : *logits) logit = static_cast<float>(logit / sum);
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const AttentionParameters p, parseAttention(context));
  const RealInput queries(context.inputs[kQueries]);
  const RealInput keys(context.inputs[kKeys]);
  const RealInput values(context.inputs[kValues]);
  std::optional<RealInput> mask;
  std::vector<int64_t> strides(4, 0);
  if (context.hasInput(kMask)) {
    mask.emplace(context.inputs[kMask]);
    strides = maskStrides(context);
  }
  RealOutput output(context.outputs[0]);
  if (output.size() == 0) return {};  // there may be any number of empty rows
  std::vector<float> logits(p.keys);
  for (size_t b = 0; b < p.batches; ++b) {
    for (size_t head = 0; head < p.heads; ++head) {
      const size_t group = head / (p.heads / p.groups);
      for (size_t t = 0; t < p.queries; ++t) {
        const float* query = queries.data() + ((b * p.queries + t) * p.heads + head) * p.size;
        for (size_t s = 0; s < p.keys; ++s) {
          const float* key = keys.data() + ((b * p.keys + s) * p.groups + group) * p.size;
          float logit = p.scale * dotProduct(query, key, p.size);
          if (p.logitCap > 0.0f) logit = p.logitCap * std::tanh(logit / p.logitCap);
          if (mask)
            logit +=
                (*mask)[b * static_cast<size_t>(strides[0]) +
                        head * static_cast<size_t>(strides[1]) +
                        t * static_cast<size_t>(strides[2]) + s * static_cast<size_t>(strides[3])];
          logits[s] = logit;
        }
        softmax(&logits);
        float* target = output.data() + ((b * p.queries + t) * p.heads + head) * p.valueSize;
        std::fill_n(target, p.valueSize, 0.0f);
        for (size_t s = 0; s < p.keys; ++s) {
          const float* value = values.data() + ((b * p.keys + s) * p.groups + group) * p.valueSize;
          for (size_t i = 0; i < p.valueSize; ++i) target[i] += logits[s] * value[i];
        }
      }
    }
  }
  output.store();
  return {};
}

}  // namespace

Result<AttentionParameters> parseAttention(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 1));
  for (const size_t i : {kQueries, kKeys, kValues}) HEARTH_TRY(requireRank(context, i, 4, 4));
  const Dimensions& query = context.inputs[kQueries].dimensions;
  const Dimensions& key = context.inputs[kKeys].dimensions;
  const Dimensions& value = context.inputs[kValues].dimensions;
  AttentionParameters p;
  p.batches = query[0];
  p.queries = query[1];
  p.heads = query[2];
  p.size = query[3];
  p.keys = key[1];
  p.groups = key[2];
  p.valueSize = value[3];
  if (key[0] != p.batches || key[3] != p.size || value[0] != p.batches || value[1] != p.keys ||
      value[2] != p.groups || p.groups == 0 || p.heads % p.groups != 0)
    return fail(ErrorCode::kBadData, "The queries {}, keys {} and values {} of {} do not fit.",
                graph::describeDimensions(query), graph::describeDimensions(key),
                graph::describeDimensions(value), context.describe());
  if (context.hasInput(kMask)) {
    const Dimensions& mask = context.inputs[kMask].dimensions;
    const Dimensions whole = {p.batches, p.heads, p.queries, p.keys};
    HEARTH_ASSIGN(const Dimensions both, broadcastShapes(context, mask, whole));
    if (both != whole)
      return fail(ErrorCode::kBadData, "The mask {} of {} does not broadcast to {}.",
                  graph::describeDimensions(mask), context.describe(),
                  graph::describeDimensions(whole));
  }
  HEARTH_ASSIGN(p.scale, floatScalar(context, kScale));
  HEARTH_ASSIGN(p.logitCap, floatScalar(context, kLogitCap));
  return p;
}

const OperationDefinition kScaledDotProductAttentionOperation = {
    OperationType::kScaledDotProductAttention, validate, prepare, execute};

}  // namespace hearth::ops
