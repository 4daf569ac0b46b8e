// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/epilogue.h"

#include <algorithm>

#include "ops/operation.h"

namespace hearth::cpu {
namespace {

using graph::OperationType;
using ops::FusedActivation;

// The operation that alone reads a float32 operand and makes another one; null if there is none, or
// several.
const graph::Operation* onlyReader(const PlanBuilder& builder, uint32_t operand) {
  const std::vector<uint32_t>& readers = builder.consumers(operand);
  if (builder.isGraphOutput(operand) || readers.size() != 1) return nullptr;
  const graph::Operation& reader = builder.operation(readers[0]);
  // Those of a program may have none.
  if (reader.outputs.size() != 1) return nullptr;
  const bool isFloat =
      builder.operand(operand).type == graph::OperandType::kTensorFloat32 &&
      builder.operand(reader.outputs[0]).type == graph::OperandType::kTensorFloat32;
  return isFloat ? &reader : nullptr;
}

// Adds the operation that alone reads the output so far, and has the output `output`, if it may be
// taken over.
bool take(PlanBuilder* builder, Epilogue* epilogue, uint32_t output) {
  const uint32_t operation = builder->consumers(epilogue->output)[0];
  if (!builder->canTakeOver(operation)) return false;
  epilogue->operations.push_back(operation);
  epilogue->output = output;
  return true;
}

// Takes an addition to `result`, which is the output so far. Returns its activation; none if there
// is no addition.
Result<std::optional<FusedActivation>> takeAddition(PlanBuilder* builder, Epilogue* epilogue) {
  const uint32_t result = epilogue->output;
  const graph::Operation* const reader = onlyReader(*builder, result);
  if (reader == nullptr || reader->type != OperationType::kAdd) return std::nullopt;
  const uint32_t addend = reader->inputs[reader->inputs[0] == result ? 1 : 0];
  if (builder->operand(addend).type != graph::OperandType::kTensorFloat32 ||
      !builder->isWritten(addend) ||
      builder->tensor(addend).dimensions != builder->tensor(result).dimensions)
    return std::nullopt;
  const ops::OperationContext context =
      ops::makeContext(builder->model(), builder->subgraph(), *reader);
  HEARTH_ASSIGN(const FusedActivation activation, ops::parseActivation(context, 2));
  if (!take(builder, epilogue, reader->outputs[0])) return std::nullopt;
  epilogue->addend = addend;
  return activation;
}

// Whether the operand has one number for each channel of `result`, and is known.
bool isOfChannels(const PlanBuilder& builder, uint32_t operand, uint32_t result) {
  if (builder.operand(operand).type != graph::OperandType::kTensorFloat32 ||
      !builder.isWritten(operand))
    return false;
  const graph::Dimensions& all = builder.tensor(result).dimensions;
  const graph::Dimensions& own = builder.tensor(operand).dimensions;
  return !own.empty() && own.size() <= all.size() && own.back() == all.back() &&
         std::all_of(own.begin(), own.end() - 1, [](uint32_t size) { return size == 1; });
}

void takeActivation(PlanBuilder* builder, Epilogue* epilogue, uint32_t result) {
  const graph::Operation* const reader = onlyReader(*builder, epilogue->output);
  if (reader == nullptr) return;
  const auto takeClamp = [&](FusedActivation activation) {
    if (take(builder, epilogue, reader->outputs[0]))
      epilogue->range = ops::activationRange(activation);
  };
  switch (reader->type) {
    case OperationType::kRelu:
      return takeClamp(FusedActivation::kRelu);
    case OperationType::kRelu1:
      return takeClamp(FusedActivation::kRelu1);
    case OperationType::kRelu6:
      return takeClamp(FusedActivation::kRelu6);
    case OperationType::kPrelu: {
      const uint32_t slopes = reader->inputs[1];
      if (reader->inputs[0] == epilogue->output && isOfChannels(*builder, slopes, result) &&
          take(builder, epilogue, reader->outputs[0]))
        epilogue->slopes = slopes;
      return;
    }
    default:
      return;
  }
}

}  // namespace

Result<std::optional<Epilogue>> findEpilogue(PlanBuilder* builder, FusedActivation activation) {
  if (activation != FusedActivation::kNone) return std::nullopt;
  const uint32_t result = builder->context().operation->outputs[0];
  Epilogue epilogue;
  epilogue.output = result;
  HEARTH_ASSIGN(const std::optional<FusedActivation> ofSum, takeAddition(builder, &epilogue));
  epilogue.range = ops::activationRange(ofSum.value_or(FusedActivation::kNone));
  if (ofSum.value_or(FusedActivation::kNone) == FusedActivation::kNone)
    takeActivation(builder, &epilogue, result);
  if (epilogue.operations.empty()) return std::nullopt;
  return epilogue;
}

}  // namespace hearth::cpu
