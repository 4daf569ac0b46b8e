// SPDX-License-Identifier: Apache-2.0
// Operations that pick rows from tables.
#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

Status translateGather(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::GatherOptions>();
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t axis, view.scalar(options.axis()));
  HEARTH_ASSIGN(uint32_t indices, view.indices(1));
  // A scalar index removes a dimension, so it stays a tensor of rank 0.
  if (view.operand(indices).type == OperandType::kTensorInt64) {
    HEARTH_ASSIGN(indices, view.intTensorInput(1));
  }
  if (options.batch_dims() == 0) return view.emit(type, {input, axis, indices});
  HEARTH_ASSIGN(const uint32_t batchRank, view.scalar(options.batch_dims()));
  return view.emit(type, {input, axis, indices, batchRank});
}

Status translateGatherNd(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t indices, view.indices(1));
  return view.emit(type, {input, indices});
}

Status translateEmbeddingLookup(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t lookups, view.input(0));
  HEARTH_ASSIGN(const uint32_t values, view.input(1));
  std::vector<uint32_t> arguments = {lookups, values};
  HEARTH_ASSIGN(const uint32_t scales, view.blockScales(1));
  if (view.operand(scales).hasValue()) arguments.push_back(scales);
  return view.emit(type, std::move(arguments));
}

// The number of rows of the result is never known in advance, whatever the file says.
Status translateWhere(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t target, view.output(0));
  graph::Dimensions& dimensions = view.builder().operand(target).dimensions;
  if (!dimensions.empty()) dimensions[0] = 0;
  return view.emit(type, {input}, {target});
}

// The boundaries are options in the file.
Status translateBucketize(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  const auto* found = view.options<schema::BucketizeOptions>().boundaries();
  std::vector<float> boundaries;
  if (found != nullptr) boundaries.assign(found->begin(), found->end());
  if (boundaries.empty())
    return fail(ErrorCode::kBadData, "It has no boundaries between its buckets.");
  graph::Operand like;
  like.type = OperandType::kTensorFloat32;
  like.dimensions = {static_cast<uint32_t>(boundaries.size())};
  const auto* bytes = reinterpret_cast<const uint8_t*>(boundaries.data());
  HEARTH_ASSIGN(
      const uint32_t operand,
      view.builder().constantTensor(std::move(like), {bytes, boundaries.size() * sizeof(float)}));
  return view.emit(type, {input, operand});
}

// How many different elements there are is never known in advance, whatever the file says.
Status translateUnique(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t different, view.output(0));
  HEARTH_ASSIGN(const uint32_t places, view.output(1));
  graph::Dimensions& dimensions = view.builder().operand(different).dimensions;
  if (!dimensions.empty()) dimensions[0] = 0;
  return view.emit(type, {input}, {different, places});
}

Status translateOneHot(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t indices, view.input(0));
  HEARTH_ASSIGN(const uint32_t depth, view.intTensorInput(1));
  HEARTH_ASSIGN(const uint32_t on, view.input(2));
  HEARTH_ASSIGN(const uint32_t off, view.input(3));
  HEARTH_ASSIGN(const uint32_t axis, view.scalar(view.options<schema::OneHotOptions>().axis()));
  return view.emit(type, {indices, depth, on, off, axis});
}

Status translateHashtableLookup(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t lookups, view.input(0));
  HEARTH_ASSIGN(const uint32_t keys, view.input(1));
  HEARTH_ASSIGN(const uint32_t values, view.input(2));
  HEARTH_ASSIGN(const uint32_t found, view.output(0));
  HEARTH_ASSIGN(const uint32_t hits, view.output(1));
  return view.emit(type, {lookups, keys, values}, {found, hits});
}

Status translateLshProjection(OperatorView& view, OperationType type) {
  // NNAPI's codes; 1 was an earlier, wrong form of SPARSE.
  constexpr int32_t kDense = 2;
  constexpr int32_t kSparse = 3;
  const schema::LSHProjectionType kind = view.options<schema::LSHProjectionOptions>().type();
  if (kind != schema::LSHProjectionType::DENSE && kind != schema::LSHProjectionType::SPARSE)
    return fail(ErrorCode::kBadData, "Its projection type {} is unknown.", static_cast<int>(kind));
  HEARTH_ASSIGN(const uint32_t hashes, view.input(0));
  HEARTH_ASSIGN(const uint32_t input, view.input(1));
  HEARTH_ASSIGN(const uint32_t weights, view.inputOr(2, OperandType::kTensorFloat32));
  HEARTH_ASSIGN(const uint32_t kindOperand,
                view.scalar(kind == schema::LSHProjectionType::DENSE ? kDense : kSparse));
  return view.emit(type, {hashes, input, weights, kindOperand});
}

}  // namespace

std::span<const TranslatorEntry> lookupTranslators() {
  static constexpr TranslatorEntry kTranslators[] = {
      {BuiltinOperator::GATHER, translateGather, OperationType::kGather},
      {BuiltinOperator::BUCKETIZE, translateBucketize, OperationType::kBucketize},
      {BuiltinOperator::UNIQUE, translateUnique, OperationType::kUnique},
      {BuiltinOperator::ONE_HOT, translateOneHot, OperationType::kOneHot},
      {BuiltinOperator::SCATTER_ND, translateWithInts<3, 2>, OperationType::kScatterNd},
      {BuiltinOperator::SPARSE_TO_DENSE, translatePlain<4>, OperationType::kSparseToDense},
      {BuiltinOperator::WHERE, translateWhere, OperationType::kWhere},
      {BuiltinOperator::GATHER_ND, translateGatherNd, OperationType::kGatherNd},
      {BuiltinOperator::EMBEDDING_LOOKUP, translateEmbeddingLookup,
       OperationType::kEmbeddingLookup},
      {BuiltinOperator::HASHTABLE_LOOKUP, translateHashtableLookup,
       OperationType::kHashtableLookup},
      {BuiltinOperator::LSH_PROJECTION, translateLshProjection, OperationType::kLshProjection},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
