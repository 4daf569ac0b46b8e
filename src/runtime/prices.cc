// SPDX-License-Identifier: Apache-2.0
#include "runtime/prices.h"

#include <algorithm>
#include <cstddef>

#include "ops/control_flow.h"

namespace hearth::runtime {
namespace {

using graph::OperandType;
using graph::OperationType;

double dimensionOf(const graph::Operand& operand, size_t index) {
  return index < operand.dimensions.size() ? std::max(operand.dimensions[index], 1u) : 1.0;
}

double elementsOf(const graph::Operand& operand) {
  double elements = 1;
  for (size_t i = 0; i < operand.dimensions.size(); ++i) elements *= dimensionOf(operand, i);
  return elements;
}

double bytesOf(const graph::Operand& operand) {
  if (!operand.hasValue() || operand.lifetime == graph::Lifetime::kSubgraph) return 0;
  if (operand.isConstant()) return static_cast<double>(operand.location.length);
  return elementsOf(operand) * static_cast<double>(graph::elementSize(operand));
}

// Float32 that may be computed as float16 counts as float32: no device of ours computes it so.
NumberKind kindOf(OperandType type) {
  if (type == OperandType::kTensorFloat16) return NumberKind::kFloat16;
  return type == OperandType::kTensorFloat32 ? NumberKind::kFloat32 : NumberKind::kQuantized;
}

// Of one operation; 0 for operations whose time goes to memory rather.
double productsOf(const graph::Subgraph& subgraph, const graph::Operation& operation) {
  if (operation.inputs.size() < 2 || operation.outputs.empty()) return 0;
  const graph::Operand& values = subgraph.operands[operation.inputs[0]];
  const graph::Operand& weights = subgraph.operands[operation.inputs[1]];
  const double results = elementsOf(subgraph.operands[operation.outputs[0]]);
  const double last =
      weights.dimensions.empty() ? 1.0 : dimensionOf(weights, weights.dimensions.size() - 1);
  switch (operation.type) {
    case OperationType::kConv2d:
    case OperationType::kGroupedConv2d:
      return results * elementsOf(weights) / dimensionOf(weights, 0);
    case OperationType::kConv3d:  // its filter has the results' channels last
      return results * elementsOf(weights) / last;
    case OperationType::kTransposeConv2d:
      return elementsOf(values) * elementsOf(weights) / last;
    case OperationType::kFullyConnected:
      return results * last;
    case OperationType::kBatchMatmul:
      return results *
             (values.dimensions.empty() ? 1.0 : dimensionOf(values, values.dimensions.size() - 1));
    default:
      return 0;
  }
}

bool readsAll(OperationType type) {
  return type != OperationType::kGather && type != OperationType::kEmbeddingLookup;
}

double timeOf(const Work& work, const DeviceSpeed& speed) {
  double seconds = work.operations * speed.operation + work.movedBytes * speed.movedByte;
  for (size_t kind = 0; kind < kNumberKinds; ++kind)
    seconds += work.products[kind] * speed.product[kind];
  return seconds;
}

}  // namespace

Work& Work::operator+=(const Work& other) {
  operations += other.operations;
  movedBytes += other.movedBytes;
  for (size_t kind = 0; kind < kNumberKinds; ++kind) products[kind] += other.products[kind];
  return *this;
}

Work Work::operator*(double factor) const {
  Work work = *this;
  work.operations *= factor;
  work.movedBytes *= factor;
  for (double& count : work.products) count *= factor;
  return work;
}

Prices::Prices(const graph::Model& model) : model_(model), subgraphs_(model.subgraphs.size()) {
  for (const graph::Operation& operation : model.main().operations)
    works_.push_back(workOf(model.main(), operation));
}

Work Prices::ofSubgraph(const graph::Operand& reference) {
  if (reference.lifetime != graph::Lifetime::kSubgraph) return {};
  std::optional<Work>& known = subgraphs_[reference.subgraphIndex];
  if (known) return *known;
  const graph::Subgraph& subgraph = model_.subgraphs[reference.subgraphIndex];
  Work sum;
  for (const graph::Operation& operation : subgraph.operations) sum += workOf(subgraph, operation);
  subgraphs_[reference.subgraphIndex] = sum;
  return sum;
}

Work Prices::workOf(const graph::Subgraph& subgraph, const graph::Operation& operation) {
  Work work;
  const auto add = [&](size_t input, double factor) {
    if (input < operation.inputs.size())
      work += ofSubgraph(subgraph.operands[operation.inputs[input]]) * factor;
  };
  if (operation.type == OperationType::kIf) {
    add(ops::kIfThen, 0.5);
    add(ops::kIfElse, 0.5);
    return work;
  }
  if (operation.type == OperationType::kWhile) {
    add(ops::kWhileCondition, 1);
    add(ops::kWhileBody, 1);
    return work;
  }
  work.operations = 1;
  for (const uint32_t index : operation.inputs) {
    const graph::Operand& operand = subgraph.operands[index];
    if (readsAll(operation.type) || !operand.isConstant()) work.movedBytes += bytesOf(operand);
  }
  for (const uint32_t index : operation.outputs)
    work.movedBytes += bytesOf(subgraph.operands[index]);
  if (const double products = productsOf(subgraph, operation); products != 0) {
    const OperandType type = subgraph.operands[operation.inputs[0]].type;
    work.products[static_cast<size_t>(kindOf(type))] = products;
  }
  return work;
}

std::vector<NumberKind> Prices::kinds() const {
  std::vector<NumberKind> kinds;
  for (size_t kind = 0; kind < kNumberKinds; ++kind)
    if (std::ranges::any_of(works_, [&](const Work& work) { return work.products[kind] != 0; }))
      kinds.push_back(static_cast<NumberKind>(kind));
  return kinds;
}

double Prices::ofOperation(const DeviceSpeed& speed, size_t operation) const {
  return timeOf(works_[operation], speed);
}

double Prices::ofSteps(std::span<const std::optional<DeviceSpeed>> speeds,
                       const std::vector<PartitionStep>& steps) const {
  const graph::Subgraph& main = model_.main();
  const size_t none = steps.size();
  std::vector<size_t> producer(main.operands.size(), none);
  for (size_t step = 0; step < steps.size(); ++step)
    for (const uint32_t operation : steps[step].operations)
      for (const uint32_t operand : main.operations[operation].outputs) producer[operand] = step;
  const auto speedOf = [&](size_t step) -> const std::optional<DeviceSpeed>* {
    return step < none && steps[step].device < speeds.size() ? &speeds[steps[step].device]
                                                             : nullptr;
  };
  double seconds = 0;
  std::vector<bool> hasLeft(main.operands.size());
  // The step that made the tensor writes it to the CPU's memory, if none has asked for it before.
  const auto leave = [&](uint32_t operand) {
    const auto* const speed = speedOf(producer[operand]);
    if (speed != nullptr && *speed && !hasLeft[operand])
      seconds += bytesOf(main.operands[operand]) * (*speed)->argumentByte;
    hasLeft[operand] = true;
  };
  std::vector<size_t> reader(main.operands.size(), none);
  for (size_t step = 0; step < steps.size(); ++step) {
    const auto* const speed = speedOf(step);
    const bool isPriced = speed != nullptr && *speed;
    if (isPriced) seconds += (*speed)->execution;
    for (const uint32_t operation : steps[step].operations) {
      if (isPriced) seconds += timeOf(works_[operation], **speed);
      for (const uint32_t operand : main.operations[operation].inputs) {
        if (main.operands[operand].isConstant() || producer[operand] == step ||
            reader[operand] == step)
          continue;
        reader[operand] = step;
        if (isPriced) seconds += bytesOf(main.operands[operand]) * (*speed)->argumentByte;
        leave(operand);
      }
    }
  }
  for (const uint32_t operand : main.outputs) leave(operand);
  return seconds;
}

}  // namespace hearth::runtime
