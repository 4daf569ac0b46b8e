// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/compilation_cache/packed_constants.h"

#include <string_view>

#include "ops/operation.h"

namespace hearth::cpu {
namespace {

using graph::OperationType;

// Positions of filter and bias in the inputs of all layers that pack.
constexpr size_t kFilter = 1;
constexpr size_t kBias = 2;

// Whether an operation accepts that the operand is omitted.
bool mayOmit(const graph::Model& model, const graph::Subgraph& omitted,
             const graph::Operation& operation) {
  const ops::OperationDefinition* definition = ops::findOperation(operation.type);
  return definition == nullptr || definition->validate(model, omitted, operation).has_value();
}

bool mayLackAnInput(const graph::Model& model) {
  graph::Subgraph main = model.main();
  for (const uint32_t input : main.inputs) {
    const graph::Lifetime lifetime = main.operands[input].lifetime;
    main.operands[input].lifetime = graph::Lifetime::kNoValue;
    for (const graph::Operation& operation : main.operations) {
      bool isReader = false;
      for (const uint32_t index : operation.inputs) isReader |= index == input;
      if (isReader && mayOmit(model, main, operation)) return true;
    }
    main.operands[input].lifetime = lifetime;
  }
  return false;
}

class Search {
 public:
  Search(const graph::Model& model, const Plan& plan, const PackedWeights& weights)
      : main_(model.main()),
        places_(weights.places()),
        readers_(main_.operands.size()),
        kernels_(main_.operations.size()),
        isReadByNode_(main_.operands.size()) {
    for (const Node& node : plan.nodes) {
      std::string_view& kernel = kernels_[node.operation];
      if (kernel != "reference") kernel = node.kernel;
      for (const ValueId id : node.inputs) {
        const Value& value = plan.values[plan.resolve(id).root];
        if (value.place == Value::Place::kConstant) isReadByNode_[value.index] = true;
      }
    }
    for (uint32_t o = 0; o < main_.operations.size(); ++o)
      for (uint32_t i = 0; i < main_.operations[o].inputs.size(); ++i)
        readers_[main_.operations[o].inputs[i]].push_back({o, i});
  }

  // Whether the operand is read only to be packed.
  bool isPackedOnly(uint32_t operand) const {
    if (isReadByNode_[operand]) return false;
    for (const Reader& reader : readers_[operand])
      if (!packs(reader, operand)) return false;
    return !readers_[operand].empty();
  }

 private:
  struct Reader {
    uint32_t operation;
    uint32_t position;  // among its inputs
  };

  bool packs(const Reader& reader, uint32_t operand) const {
    const graph::Operation& operation = main_.operations[reader.operation];
    const std::string_view kernel = kernels_[reader.operation];
    const bool isWeight = reader.position == kFilter || reader.position == kBias;
    switch (operation.type) {
      case OperationType::kDequantize:
      case OperationType::kCast:
        // A conversion without a node of its own: the readers of the result pack it.
        return kernel.empty() && !isOutput(operation.outputs[0]) &&
               isPackedOnly(operation.outputs[0]);
      case OperationType::kDepthwiseConv2d:
        // A kernel of ours packs it once; XNNPACK packs it at each start, from a copy.
        return isWeight && kernel != "reference" &&
               (places_.contains({WeightPlace::kConstants, operand}) ||
                (kernel == "own" && hasPlace(reader.operation, kernel)));
      case OperationType::kConv2d:
      case OperationType::kGroupedConv2d:
        // XNNPACK may pack filters of one channel as depthwise ones, at each start.
        return isWeight && hasSeveralChannels(operation) && hasPlace(reader.operation, kernel);
      case OperationType::kFullyConnected:
        return isWeight && hasPlace(reader.operation, kernel);
      default:
        return false;
    }
  }

  bool isOutput(uint32_t operand) const {
    return main_.operands[operand].lifetime == graph::Lifetime::kSubgraphOutput;
  }

  bool hasPlace(uint32_t operation, std::string_view kernel) const {
    const auto place = places_.lower_bound({operation, 0});
    return kernel != "reference" && place != places_.end() && place->first.operation == operation;
  }

  bool hasSeveralChannels(const graph::Operation& operation) const {
    const graph::Dimensions& filter = main_.operands[operation.inputs[kFilter]].dimensions;
    return filter.size() == 4 && filter[3] > 1;
  }

  const graph::Subgraph& main_;
  const std::map<WeightPlace, PackedPlace> places_;
  std::vector<std::vector<Reader>> readers_;  // by operand
  std::vector<std::string_view> kernels_;     // by operation; empty without a node
  std::vector<bool> isReadByNode_;            // by operand: whether a kernel reads it in place
};

}  // namespace

std::vector<bool> findPackedConstants(const graph::Model& model, const Plan& plan,
                                      const PackedWeights& weights) {
  const graph::Subgraph& main = model.main();
  std::vector<bool> isPacked(main.operands.size());
  if (mayLackAnInput(model)) return isPacked;
  const Search search(model, plan, weights);
  for (uint32_t i = 0; i < main.operands.size(); ++i)
    isPacked[i] = main.operands[i].isConstant() && search.isPackedOnly(i);
  return isPacked;
}

}  // namespace hearth::cpu
