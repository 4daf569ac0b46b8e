// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/constant_values.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "frontends/tflite/reader/sparse_constant.h"
#include "frontends/tflite/reader/two_bit_constant.h"

namespace hearth::tflite {
namespace {

using graph::Lifetime;

Status setTwoBitValue(ModelBuilder& model, const BufferRange& range, const std::string& name,
                      graph::Operand* operand) {
  HEARTH_ASSIGN(const uint64_t count, graph::elementCount(*operand));
  if (!graph::isFullySpecified(*operand) || twoBitSize(count) != range.length)
    return fail(ErrorCode::kBadData,
                "The constant tensor \"{}\" of type INT2{} needs {} bytes, its buffer has {}.",
                name, graph::describeDimensions(operand->dimensions), twoBitSize(count),
                range.length);
  HEARTH_TRY(model.charge(count));
  const std::vector<uint8_t> values = widenTwoBits(model.file().bytes(range), count);
  operand->lifetime = Lifetime::kConstantCopy;
  operand->location = model.copyUncharged(values);
  return {};
}

Status setSparseValue(ModelBuilder& model, const schema::SparsityParameters& sparsity,
                      const BufferRange& range, graph::Operand* operand) {
  // A dense copy is charged at a fraction of its size, so that files of mostly zeros stay within
  // the import's bounds.
  constexpr uint64_t kChargedPart = 8;
  HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(*operand));
  HEARTH_TRY(model.charge(bytes / kChargedPart));
  HEARTH_ASSIGN(const std::vector<uint8_t> values,
                densify(sparsity, operand->dimensions, graph::elementSize(operand->type),
                        model.file().bytes(range)));
  operand->lifetime = Lifetime::kConstantCopy;
  operand->location = model.copyUncharged(values);
  return {};
}

}  // namespace

Status setDenseValue(ModelBuilder& model, const BufferRange& range, const std::string& name,
                     graph::Operand* operand) {
  if (!graph::isFullySpecified(*operand))
    return fail(ErrorCode::kUnsupported,
                "The constant tensor \"{}\" has the shape {}, which is not supported.", name,
                graph::describeDimensions(operand->dimensions));
  HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(*operand));
  if (bytes != range.length)
    return fail(ErrorCode::kBadData,
                "The constant tensor \"{}\" of type {}{} needs {} bytes, its buffer has {}.", name,
                graph::nameOf(operand->type), graph::describeDimensions(operand->dimensions), bytes,
                range.length);
  const uint8_t* data = model.file().bytes(range).data();
  const size_t element = std::max<size_t>(graph::elementSize(operand->type), 1);
  if (reinterpret_cast<uintptr_t>(data) % element == 0) {
    operand->lifetime = Lifetime::kConstantReference;
    operand->location = {.pool = range.pool, .offset = range.offset, .length = range.length};
    return {};
  }
  // Kernels read elements in place, which a misaligned buffer does not allow.
  operand->lifetime = Lifetime::kConstantCopy;
  HEARTH_ASSIGN(operand->location, model.copyConstant({data, range.length}));
  return {};
}

Status setValue(ModelBuilder& model, const schema::Tensor& tensor, const BufferRange& range,
                const std::string& name, graph::Operand* operand) {
  if (tensor.sparsity() != nullptr) {
    HEARTH_TRY_CONTEXT(setSparseValue(model, *tensor.sparsity(), range, operand),
                       "while reading the sparse tensor \"{}\"", name);
    return {};
  }
  if (tensor.type() == schema::TensorType::INT2) return setTwoBitValue(model, range, name, operand);
  return setDenseValue(model, range, name, operand);
}

}  // namespace hearth::tflite
