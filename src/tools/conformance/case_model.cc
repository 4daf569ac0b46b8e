// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/case_model.h"

#include <cstring>

namespace hearth::conformance {
namespace {

using graph::Lifetime;
using graph::OperandType;

std::vector<uint8_t> valueBytes(const CaseOperand& operand, bool isMadeSigned) {
  std::vector<uint8_t> bytes(operand.data.begin(), operand.data.end());
  if (isMadeSigned)
    for (uint8_t& byte : bytes) byte ^= 0x80;
  return bytes;
}

// Appends bytes at the next multiple of `alignment`.
graph::DataLocation append(const std::vector<uint8_t>& bytes, size_t alignment,
                           std::vector<uint8_t>* storage) {
  storage->resize((storage->size() + alignment - 1) / alignment * alignment);
  const graph::DataLocation location{0, storage->size(), bytes.size()};
  storage->insert(storage->end(), bytes.begin(), bytes.end());
  return location;
}

CaseValue makeValue(const CaseOperand& operand, bool isMadeSigned) {
  CaseValue value;
  value.type = isMadeSigned ? OperandType::kTensorQuant8AsymmSigned : operand.type;
  value.dimensions = operand.dimensions;
  value.isIgnored = operand.isIgnored;
  value.data = valueBytes(operand, isMadeSigned);
  return value;
}

}  // namespace

const char* nameOf(Variant variant) {
  if (variant == Variant::kDynamicOutputShape) return "dynamic output shape";
  return variant == Variant::kSigned ? "signed" : "as is";
}

std::vector<Variant> variantsOf(const Case& testCase) {
  std::vector<Variant> variants{Variant::kAsIs};
  if ((testCase.flags & kDynamicOutputShape) != 0) variants.push_back(Variant::kDynamicOutputShape);
  if ((testCase.flags & kQuantCoupling) != 0) variants.push_back(Variant::kSigned);
  return variants;
}

Result<CaseModel> buildModel(const Case& testCase, Variant variant) {
  constexpr size_t kCopyAlignment = 16;
  constexpr size_t kPoolAlignment = 4;
  CaseModel result;
  graph::Model model;
  std::vector<uint8_t> shared;
  model.relaxFloat32ToFloat16 = (testCase.flags & kRelaxed) != 0;
  model.subgraphs.resize(testCase.subgraphs.size());
  for (size_t g = 0; g < testCase.subgraphs.size(); ++g) {
    const CaseSubgraph& from = testCase.subgraphs[g];
    graph::Subgraph& to = model.subgraphs[g];
    to.name = from.name;
    to.inputs = from.inputs;
    to.outputs = from.outputs;
    to.operations = from.operations;
    for (const CaseOperand& operand : from.operands) {
      const bool isMadeSigned =
          variant == Variant::kSigned && operand.type == OperandType::kTensorQuant8Asymm;
      graph::Operand made;
      made.name = operand.name;
      made.type = isMadeSigned ? OperandType::kTensorQuant8AsymmSigned : operand.type;
      made.dimensions = operand.dimensions;
      made.scale = operand.scale;
      // Only hostile files wrap here; validation then refuses the model.
      made.zeroPoint = isMadeSigned
                           ? static_cast<int32_t>(static_cast<uint32_t>(operand.zeroPoint) - 128u)
                           : operand.zeroPoint;
      made.perChannel = operand.perChannel;
      made.lifetime = operand.lifetime;
      if (variant == Variant::kDynamicOutputShape && g == 0 &&
          operand.lifetime == Lifetime::kSubgraphOutput)
        made.dimensions.assign(made.dimensions.size(), 0);
      if (operand.lifetime == Lifetime::kConstantCopy)
        made.location =
            append(valueBytes(operand, isMadeSigned), kCopyAlignment, &model.constantBytes);
      if (operand.lifetime == Lifetime::kConstantReference)
        made.location = append(valueBytes(operand, isMadeSigned), kPoolAlignment, &shared);
      if (operand.lifetime == Lifetime::kSubgraph) {
        if (operand.subgraph < 0)
          return fail(ErrorCode::kBadData, "The operand {} refers to subgraph {}.", operand.name,
                      operand.subgraph);
        made.subgraphIndex = static_cast<uint32_t>(operand.subgraph) + 1;
      }
      to.operands.push_back(std::move(made));
    }
  }
  if (!shared.empty()) {
    HEARTH_ASSIGN(memory::PoolRef pool, memory::Pool::anonymous(shared.size()));
    std::memcpy(pool->mutableData(), shared.data(), shared.size());
    model.pools.push_back(std::move(pool));
  }
  const CaseSubgraph& main = testCase.subgraphs[0];
  for (const auto& [indices, values] :
       {std::pair(&main.inputs, &result.inputs), std::pair(&main.outputs, &result.outputs)})
    for (uint32_t index : *indices) {
      if (index >= main.operands.size())
        return fail(ErrorCode::kBadData, "The graph argument {} is not below {}.", index,
                    main.operands.size());
      const CaseOperand& operand = main.operands[index];
      values->push_back(makeValue(
          operand, variant == Variant::kSigned && operand.type == OperandType::kTensorQuant8Asymm));
    }
  HEARTH_TRY(graph::sortIntoRunOrder(&model));
  result.model = std::make_shared<const graph::Model>(std::move(model));
  return result;
}

}  // namespace hearth::conformance
