// SPDX-License-Identifier: Apache-2.0
#include "graph/model.h"

#include <algorithm>

#include "base/format.h"

namespace hearth::graph {

const uint8_t* Model::constantData(const Operand& operand) const {
  if (operand.lifetime == Lifetime::kConstantCopy)
    return constantBytes.data() + operand.location.offset;
  if (operand.lifetime == Lifetime::kConstantReference)
    return pools[operand.location.pool]->data() + operand.location.offset;
  return nullptr;
}

const Extension* Model::findExtension(int32_t code) const {
  const auto it = std::ranges::find(extensions, code >> 16, &Extension::prefix);
  return it != extensions.end() ? &*it : nullptr;
}

const Extension* Model::findExtension(std::string_view extensionName) const {
  const auto it = std::ranges::find(extensions, extensionName, &Extension::name);
  return it != extensions.end() ? &*it : nullptr;
}

bool isFullySpecified(const Operand& operand) {
  if (isScalar(operand.type)) return true;
  if (operand.dimensions.empty()) return operand.isRankZeroTensor;
  for (uint32_t dimension : operand.dimensions)
    if (dimension == 0) return false;
  return true;
}

Result<uint64_t> elementCount(const Operand& operand) {
  if (!isFullySpecified(operand))
    return fail(ErrorCode::kBadData, "The operand {} has unknown dimensions.", describe(operand));
  uint64_t count = 1;
  for (uint32_t dimension : operand.dimensions) {
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(dimension), &count) ||
        count > (uint64_t{1} << 62))
      return fail(ErrorCode::kBadData, "The operand {} has too many elements.", describe(operand));
  }
  return count;
}

Result<uint64_t> byteSize(const Operand& operand) {
  HEARTH_ASSIGN(const uint64_t count, elementCount(operand));
  if (operand.type == OperandType::kTensorInt4) return (count + 1) / 2;
  const size_t element = elementSize(operand);
  uint64_t bytes;
  if (__builtin_mul_overflow(count, static_cast<uint64_t>(element), &bytes) ||
      bytes > (uint64_t{1} << 62))
    return fail(ErrorCode::kBadData, "The operand {} is too large.", describe(operand));
  return bytes;
}

namespace {

std::string textOf(const Dimensions& dimensions, const char* ofZero) {
  std::string text = "[";
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (i != 0) text += ",";
    text += dimensions[i] == 0 ? ofZero : std::to_string(dimensions[i]);
  }
  return text + "]";
}

}  // namespace

std::string describeDimensions(const Dimensions& dimensions) {
  return textOf(dimensions, "0");
}

std::string describe(const Operand& operand) {
  std::string text = nameOf(operand.type);
  if (!isScalar(operand.type)) text += textOf(operand.dimensions, "?");
  if (!operand.name.empty()) text += base::formatText(" \"{}\"", operand.name);
  return text;
}

}  // namespace hearth::graph
