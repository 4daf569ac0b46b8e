// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "graph/float_range.h"
#include "graph/model.h"
#include "graph/nesting.h"

namespace hearth::graph {
namespace {

std::pair<int32_t, int32_t> zeroPointRange(OperandType type) {
  switch (type) {
    case OperandType::kTensorQuant8Asymm:
      return {0, 255};
    case OperandType::kTensorQuant8AsymmSigned:
      return {-128, 127};
    case OperandType::kTensorQuant16Asymm:
      return {0, 65535};
    case OperandType::kTensorInt16:
      return {-32768, 32767};
    default:
      return {0, 0};
  }
}

Status validatePerChannel(const Operand& operand) {
  const PerChannelQuantization& quantization = operand.perChannel;
  if (operand.type != OperandType::kTensorQuant8SymmPerChannel) {
    if (!quantization.scales.empty() && operand.type != OperandType::kTensorInt4)
      return fail(ErrorCode::kBadData, "The operand {} has per-channel scales, its type has none.",
                  describe(operand));
    if (quantization.scales.empty()) return {};
  }
  if (quantization.channelDim >= operand.dimensions.size())
    return fail(ErrorCode::kBadData, "The channel dimension {} of {} is not below its rank {}.",
                quantization.channelDim, describe(operand), operand.dimensions.size());
  const uint32_t channels = operand.dimensions[quantization.channelDim];
  if (channels == 0 || quantization.scales.size() != channels)
    return fail(ErrorCode::kBadData, "The operand {} has {} scales for {} channels.",
                describe(operand), quantization.scales.size(), channels);
  using Limits = std::numeric_limits<float>;
  if (quantization.scales.areWithin(Limits::denorm_min(), Limits::max())) return {};
  const auto isGood = [](float scale) {
    return scale > 0.0f && scale <= Limits::max();
  };
  const auto bad = std::ranges::find_if_not(quantization.scales, isGood);
  return fail(ErrorCode::kBadData, "Scale {} of {} is {}, it must be finite and positive.",
              bad - quantization.scales.begin(), describe(operand), *bad);
}

// A type or an operation of a driver needs its extension among the model's.
Status validateDriverCode(const Model& model, int32_t code, const std::string& described) {
  if (model.findExtension(code) != nullptr) return {};
  return fail(ErrorCode::kBadData, "{} belongs to the extension of prefix {}, which is unknown.",
              described, code >> 16);
}

Status validateDriverOperand(const Model& model, const Operand& operand) {
  HEARTH_TRY(validateDriverCode(model, static_cast<int32_t>(operand.type), describe(operand)));
  if (operand.driverElementSize == 0)
    return fail(ErrorCode::kBadData, "The operand {} has elements of 0 bytes.", describe(operand));
  if (operand.scale != 0.0f || operand.zeroPoint != 0 || !operand.perChannel.scales.empty())
    return fail(ErrorCode::kBadData, "The operand {} has a scale or a zero point, its type none.",
                describe(operand));
  return {};
}

Status validateExtensions(const Model& model) {
  for (size_t i = 0; i < model.extensions.size(); ++i) {
    const Extension& extension = model.extensions[i];
    if (extension.prefix <= kTfliteExtensionPrefix || extension.prefix > kMaxExtensionPrefix ||
        extension.name.empty())
      return fail(ErrorCode::kBadData, "The extension \"{}\" has the prefix {}.", extension.name,
                  extension.prefix);
    for (size_t k = 0; k < i; ++k)
      if (model.extensions[k].prefix == extension.prefix ||
          model.extensions[k].name == extension.name)
        return fail(ErrorCode::kBadData, "The extension \"{}\" of prefix {} is there twice.",
                    extension.name, extension.prefix);
  }
  return {};
}

Status validateQuantization(const Operand& operand) {
  HEARTH_TRY(validatePerChannel(operand));
  if (operand.type == OperandType::kTensorQuant8SymmPerChannel) return {};
  if (!std::isfinite(operand.scale) || operand.scale < 0.0f)
    return fail(ErrorCode::kBadData, "The scale {} of {} is not a finite positive number.",
                operand.scale, describe(operand));
  if (isQuantized(operand.type) && operand.scale == 0.0f)
    return fail(ErrorCode::kBadData, "The scale of {} is 0.", describe(operand));
  if (operand.type == OperandType::kTensorInt32) return {};
  const auto [lowest, highest] = zeroPointRange(operand.type);
  if (operand.zeroPoint < lowest || operand.zeroPoint > highest)
    return fail(ErrorCode::kBadData, "The zero point {} of {} is outside [{}, {}].",
                operand.zeroPoint, describe(operand), lowest, highest);
  return {};
}

Status validateConstant(const Model& model, const Operand& operand) {
  if (operand.type == OperandType::kTensorString)
    return fail(ErrorCode::kBadData,
                "The operand {} is a constant; STRING_CONSTANT makes tensors of strings.",
                describe(operand));
  HEARTH_ASSIGN(const uint64_t bytes, byteSize(operand));
  const DataLocation& location = operand.location;
  if (bytes != location.length)
    return fail(ErrorCode::kBadData, "The constant {} needs {} bytes, its value has {}.",
                describe(operand), bytes, location.length);
  if (operand.lifetime == Lifetime::kConstantCopy) {
    const uint64_t size = model.constantBytes.size();
    if (location.offset > size || location.length > size - location.offset)
      return fail(ErrorCode::kBadData,
                  "The constant {} lies at {}+{}, outside the {} bytes of copied constants.",
                  describe(operand), location.offset, location.length, size);
    return {};
  }
  if (location.pool >= model.pools.size() || model.pools[location.pool] == nullptr)
    return fail(ErrorCode::kBadData, "The constant {} refers to pool {} of {}.", describe(operand),
                location.pool, model.pools.size());
  const memory::Pool& pool = *model.pools[location.pool];
  if (!pool.contains(location.offset, location.length))
    return fail(ErrorCode::kBadData, "The constant {} lies at {}+{}, outside its pool of {} bytes.",
                describe(operand), location.offset, location.length, pool.size());
  return {};
}

Status validateOperand(const Model& model, const Operand& operand) {
  const OperandTypeInfo* info = findOperandType(operand.type);
  if (isDriverCode(operand.type))
    HEARTH_TRY(validateDriverOperand(model, operand));
  else if (info == nullptr)
    return fail(ErrorCode::kBadData, "The {} is unknown.", nameOf(operand.type));
  else if (operand.driverElementSize != 0 || !operand.driverData.empty())
    return fail(ErrorCode::kBadData, "The operand {} has data of an extension, its type none.",
                describe(operand));
  if (isScalar(operand.type) && !operand.dimensions.empty())
    return fail(ErrorCode::kBadData, "The scalar {} has dimensions {}.", describe(operand),
                describeDimensions(operand.dimensions));
  if (operand.isRankZeroTensor && !operand.dimensions.empty())
    return fail(ErrorCode::kBadData, "The rank-0 tensor {} has dimensions.", describe(operand));
  if (operand.lifetime == Lifetime::kNoValue) return {};
  if (!isDriverCode(operand.type)) HEARTH_TRY(validateQuantization(operand));
  if (operand.isConstant()) return validateConstant(model, operand);
  if ((operand.lifetime == Lifetime::kSubgraph) != (operand.type == OperandType::kModel))
    return fail(ErrorCode::kBadData, "The operand {} mixes up MODEL and a value.",
                describe(operand));
  if (operand.lifetime == Lifetime::kSubgraph && operand.subgraphIndex >= model.subgraphs.size())
    return fail(ErrorCode::kBadData, "The operand {} refers to subgraph {} of {}.",
                describe(operand), operand.subgraphIndex, model.subgraphs.size());
  if (isFullySpecified(operand)) HEARTH_TRY(byteSize(operand));
  return {};
}

Status validateGraphArguments(const Subgraph& subgraph) {
  std::vector<bool> listed(subgraph.operands.size(), false);
  const std::pair<const std::vector<uint32_t>*, Lifetime> lists[] = {
      {&subgraph.inputs, Lifetime::kSubgraphInput}, {&subgraph.outputs, Lifetime::kSubgraphOutput}};
  for (const auto& [list, lifetime] : lists) {
    for (uint32_t index : *list) {
      if (index >= subgraph.operands.size())
        return fail(ErrorCode::kBadData, "The graph argument {} is not below the {} operands.",
                    index, subgraph.operands.size());
      if (subgraph.operands[index].lifetime != lifetime || listed[index])
        return fail(ErrorCode::kBadData,
                    "The operand {} is listed as graph {} and has another role.",
                    describe(subgraph.operands[index]),
                    lifetime == Lifetime::kSubgraphInput ? "input" : "output");
      listed[index] = true;
    }
  }
  for (size_t i = 0; i < subgraph.operands.size(); ++i) {
    const Lifetime lifetime = subgraph.operands[i].lifetime;
    if ((lifetime == Lifetime::kSubgraphInput || lifetime == Lifetime::kSubgraphOutput) &&
        !listed[i])
      return fail(ErrorCode::kBadData, "The operand {} has a graph role and is not listed.",
                  describe(subgraph.operands[i]));
  }
  return {};
}

Status validateOperations(const Model& model, const Subgraph& subgraph) {
  const size_t count = subgraph.operands.size();
  std::vector<bool> written(count, false);
  for (size_t i = 0; i < count; ++i) {
    const Lifetime lifetime = subgraph.operands[i].lifetime;
    written[i] = lifetime != Lifetime::kTemporary && lifetime != Lifetime::kSubgraphOutput;
  }
  for (size_t i = 0; i < subgraph.operations.size(); ++i) {
    const Operation& operation = subgraph.operations[i];
    if (isDriverCode(operation.type))
      HEARTH_TRY(validateDriverCode(model, static_cast<int32_t>(operation.type),
                                    base::formatText("Operation {}", i)));
    else if (findOperationType(operation.type) == nullptr)
      return fail(ErrorCode::kBadData, "Operation {} is {}, which is unknown.", i,
                  nameOf(operation.type));
    for (uint32_t index : operation.inputs) {
      if (index >= count)
        return fail(ErrorCode::kBadData, "Operation {} ({}) reads operand {} of {}.", i,
                    nameOf(operation.type), index, count);
      if (!written[index])
        return fail(ErrorCode::kBadData, "Operation {} ({}) reads {} before it is written.", i,
                    nameOf(operation.type), describe(subgraph.operands[index]));
    }
    for (uint32_t index : operation.outputs) {
      if (index >= count)
        return fail(ErrorCode::kBadData, "Operation {} ({}) writes operand {} of {}.", i,
                    nameOf(operation.type), index, count);
      const Operand& operand = subgraph.operands[index];
      if (operand.lifetime == Lifetime::kNoValue) continue;
      if (written[index])
        return fail(ErrorCode::kBadData, "Operation {} ({}) writes {}, which has a value already.",
                    i, nameOf(operation.type), describe(operand));
      written[index] = true;
    }
  }
  for (uint32_t index : subgraph.outputs)
    if (!written[index])
      return fail(ErrorCode::kBadData, "No operation writes the graph output {}.",
                  describe(subgraph.operands[index]));
  return {};
}

// Depth-first over references between subgraphs. A reference to a subgraph that is open is a cycle.
Status checkNesting(const Model& model) {
  enum class Mark : uint8_t { kNew, kOpen, kDone };
  std::vector<Mark> marks(model.subgraphs.size(), Mark::kNew);
  std::vector<size_t> nesting(model.subgraphs.size(), 0);  // of the subgraphs within it, when done
  struct Frame {
    size_t subgraph;
    size_t operand;
  };
  for (size_t root = 0; root < model.subgraphs.size(); ++root) {
    if (marks[root] != Mark::kNew) continue;
    std::vector<Frame> stack{{root, 0}};
    marks[root] = Mark::kOpen;
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const std::vector<Operand>& operands = model.subgraphs[frame.subgraph].operands;
      if (frame.operand == operands.size()) {
        const size_t done = frame.subgraph;
        marks[done] = Mark::kDone;
        stack.pop_back();
        if (!stack.empty()) {
          size_t& outer = nesting[stack.back().subgraph];
          outer = std::max(outer, nesting[done] + 1);
        }
        continue;
      }
      const Operand& operand = operands[frame.operand++];
      if (operand.lifetime != Lifetime::kSubgraph) continue;
      const size_t next = operand.subgraphIndex;
      if (marks[next] == Mark::kOpen)
        return fail(ErrorCode::kBadData, "Subgraph {} refers to itself through others.", next);
      if (marks[next] == Mark::kDone)
        nesting[frame.subgraph] = std::max(nesting[frame.subgraph], nesting[next] + 1);
      if (marks[next] == Mark::kNew) {
        marks[next] = Mark::kOpen;
        stack.push_back({next, 0});
      }
    }
    if (nesting[root] >= kMaxNesting)
      return fail(ErrorCode::kBadData, "Subgraphs lie {} deep within subgraph {}; the limit is {}.",
                  nesting[root], root, kMaxNesting - 1);
  }
  return {};
}

}  // namespace

Status validate(const Model& model) {
  if (model.subgraphs.empty()) return fail(ErrorCode::kBadData, "The model has no graph.");
  HEARTH_TRY(validateExtensions(model));
  for (size_t g = 0; g < model.subgraphs.size(); ++g) {
    const Subgraph& subgraph = model.subgraphs[g];
    for (size_t i = 0; i < subgraph.operands.size(); ++i)
      HEARTH_TRY_CONTEXT(validateOperand(model, subgraph.operands[i]),
                         "while validating operand {} of subgraph {}", i, g);
    HEARTH_TRY_CONTEXT(validateGraphArguments(subgraph), "while validating subgraph {}", g);
    HEARTH_TRY_CONTEXT(validateOperations(model, subgraph), "while validating subgraph {}", g);
  }
  return checkNesting(model);
}

}  // namespace hearth::graph
