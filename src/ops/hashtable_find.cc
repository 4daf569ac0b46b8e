// SPDX-License-Identifier: Apache-2.0
// HASHTABLE_FIND of the extension looks up each element in a table of a model file. Inputs: the
// elements, TENSOR_INT64 or TENSOR_STRING of any shape; the table's keys in ascending order, each
// once; its values; and the value of a missing key, one element. Keys and values are a TENSOR_INT64
// of rank 1 or, for strings, a buffer of strings (memory/packed_strings.h), TENSOR_QUANT8_ASYMM;
// both are omitted for a table without keys. The output has the shape of the elements.
#include <algorithm>
#include <optional>
#include <ranges>
#include <string>

#include "memory/packed_strings.h"
#include "memory/string_heap.h"
#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr size_t kElements = 0;
constexpr size_t kKeys = 1;
constexpr size_t kValues = 2;
constexpr size_t kMissing = 3;

constexpr TypeSet kTableTypes = OperandType::kTensorInt64 | OperandType::kTensorString;

// The type of a list of keys or values of the table.
OperandType listTypeOf(OperandType type) {
  return type == OperandType::kTensorString ? OperandType::kTensorQuant8Asymm : type;
}

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(4, 1));
  HEARTH_TRY(signature.inputType(kElements, kTableTypes));
  HEARTH_TRY(signature.inputType(kMissing, kTableTypes));
  HEARTH_TRY(signature.outputTypeLike(0, kMissing));
  if (!signature.hasInput(kKeys) && !signature.hasInput(kValues)) return {};
  HEARTH_TRY(signature.inputTensor(kKeys, listTypeOf(signature.input(kElements).type), 1, 1));
  return signature.inputTensor(kValues, listTypeOf(signature.input(kMissing).type), 1, 1);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  HEARTH_TRY(requireOneElement(context, kMissing));
  return context.setOutputDimensions(0, context.inputs[kElements].dimensions);
}

// The keys or the values of a table.
struct List {
  std::span<const int64_t> numbers;
  std::optional<memory::PackedStrings> strings;

  size_t count() const { return strings ? strings->count() : numbers.size(); }
};

Result<List> listOf(const OperationContext& context, size_t index) {
  List list;
  if (!context.hasInput(index)) return list;
  const Tensor& tensor = context.inputs[index];
  if (tensor.type() == OperandType::kTensorInt64) {
    list.numbers = {tensor.as<const int64_t>(), tensor.elementCount()};
    return list;
  }
  HEARTH_ASSIGN(list.strings,
                memory::PackedStrings::of({tensor.as<const uint8_t>(), tensor.elementCount()}));
  return list;
}

// The place of the key of an element; keys.count() without one.
Result<size_t> findKey(const List& keys, const Tensor& elements, uint64_t element) {
  if (elements.type() == OperandType::kTensorInt64) {
    const int64_t wanted = elements.as<int64_t>()[element];
    const auto found = std::ranges::lower_bound(keys.numbers, wanted);
    const bool isThere = found != keys.numbers.end() && *found == wanted;
    return isThere ? static_cast<size_t>(found - keys.numbers.begin()) : keys.count();
  }
  if (!keys.strings) return keys.count();
  HEARTH_ASSIGN(const std::string wanted,
                memory::readString(elements.as<memory::StringHandle>()[element]));
  const auto places = std::views::iota(size_t{0}, keys.count());
  const auto found = std::ranges::lower_bound(places, std::string_view(wanted), {},
                                              [&](size_t place) { return (*keys.strings)[place]; });
  const bool isThere = found != places.end() && (*keys.strings)[*found] == wanted;
  return isThere ? *found : keys.count();
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const List keys, listOf(context, kKeys));
  HEARTH_ASSIGN(const List values, listOf(context, kValues));
  if (keys.count() != values.count())
    return fail(ErrorCode::kBadData, "{} has {} keys and {} values.", context.describe(),
                keys.count(), values.count());
  const Tensor& elements = context.inputs[kElements];
  // Handles and numbers have the same size.
  auto* const target = context.outputs[0].as<uint64_t>();
  const uint64_t missing = *context.inputs[kMissing].as<uint64_t>();
  for (uint64_t i = 0; i < elements.elementCount(); ++i) {
    HEARTH_ASSIGN(const size_t place, findKey(keys, elements, i));
    if (place == keys.count()) {
      target[i] = missing;
    } else if (values.strings) {
      HEARTH_ASSIGN(target[i], memory::putString((*values.strings)[place]));
    } else {
      target[i] = static_cast<uint64_t>(values.numbers[place]);
    }
  }
  return {};
}

}  // namespace

const OperationDefinition kHashtableFindOperation = {OperationType::kHashtableFind, validate,
                                                     prepare, execute};

}  // namespace hearth::ops
