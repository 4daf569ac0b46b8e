// SPDX-License-Identifier: Apache-2.0
#include "hal/request_check.h"

#include <optional>

#include "hal/joined_memories.h"
#include "memory/sigbus_guard.h"

namespace hearth::hal {
namespace {

// The dimensions that model and request determine together; 0 where neither does.
Result<graph::Dimensions> combine(const graph::Operand& operand, const graph::Dimensions& given) {
  if (given.empty()) return operand.dimensions;
  if (graph::isScalar(operand.type) || operand.isRankZeroTensor)
    return fail(ErrorCode::kBadData, "{} gets the dimensions {}, it has none.",
                graph::describe(operand), graph::describeDimensions(given));
  if (operand.dimensions.empty()) return given;
  bool fits = operand.dimensions.size() == given.size();
  graph::Dimensions combined = operand.dimensions;
  for (size_t i = 0; fits && i < given.size(); ++i) {
    fits = combined[i] == 0 || given[i] == 0 || combined[i] == given[i];
    if (combined[i] == 0) combined[i] = given[i];
  }
  if (!fits)
    return fail(ErrorCode::kBadData, "{} gets the dimensions {}.", graph::describe(operand),
                graph::describeDimensions(given));
  return combined;
}

Status resolveMemory(const Argument& argument, bool isInput, BoundRequest* bound,
                     ops::RunArgument* resolved) {
  resolved->length = argument.length;
  if (argument.kind == Argument::Kind::kPointer) {
    if (argument.pointer == nullptr)
      return fail(ErrorCode::kBadData, "The pointer is null, its length {}.", argument.length);
    resolved->data = argument.pointer;
    return {};
  }
  if (argument.kind == Argument::Kind::kBuffer)
    return fail(ErrorCode::kBadData, "The buffer token {} is unknown.", argument.token);
  HEARTH_ASSIGN(resolved->data, addressOf(argument, isInput));
  bound->pools.push_back(argument.pool);
  return {};
}

Status checkArgument(const graph::Operand& operand, const Argument& argument, bool isInput,
                     BoundRequest* bound, ops::RunArgument* resolved) {
  HEARTH_ASSIGN(resolved->dimensions, combine(operand, argument.dimensions));
  resolved->isPresent = argument.kind != Argument::Kind::kNoValue;
  resolved->hasReadableTail = argument.hasReadableTail;
  if (!resolved->isPresent) return {};
  HEARTH_TRY(resolveMemory(argument, isInput, bound, resolved));
  graph::Operand sized;
  sized.type = operand.type;
  sized.isRankZeroTensor = operand.isRankZeroTensor;
  sized.driverElementSize = operand.driverElementSize;
  sized.dimensions = resolved->dimensions;
  sized.name = operand.name;
  if (!graph::isFullySpecified(sized)) {
    const bool isEmptyInput = isInput && argument.length == 0 && !sized.dimensions.empty();
    if (!isInput || isEmptyInput) return {};
    return fail(ErrorCode::kBadData,
                "{} has unknown dimensions and the request does not give them.",
                graph::describe(sized));
  }
  HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(sized));
  if (argument.length != bytes)
    return fail(ErrorCode::kBadData, "{} needs {} bytes, the argument has {}.",
                graph::describe(sized), bytes, argument.length);
  return {};
}

Status checkArguments(const graph::Subgraph& main, const std::vector<uint32_t>& indices,
                      const std::vector<Argument>& arguments, bool isInput, BoundRequest* bound,
                      std::vector<ops::RunArgument>* resolved) {
  const char* role = isInput ? "input" : "output";
  if (arguments.size() != indices.size())
    return fail(ErrorCode::kBadData, "The request has {} {}s, the model has {}.", arguments.size(),
                role, indices.size());
  resolved->resize(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    HEARTH_TRY_CONTEXT(
        checkArgument(main.operands[indices[i]], arguments[i], isInput, bound, &(*resolved)[i]),
        "while checking {} {} of the request", role, i);
  return {};
}

}  // namespace

Result<uint8_t*> addressOf(const Argument& argument, bool isInput) {
  if (argument.pool == nullptr) return fail(ErrorCode::kBadData, "The memory pool is missing.");
  const memory::Pool& pool = *argument.pool;
  if (!pool.contains(argument.offset, argument.length))
    return fail(ErrorCode::kBadData, "The range {}+{} is outside its pool of {} bytes.",
                argument.offset, argument.length, pool.size());
  if (pool.data() == nullptr)
    return fail(ErrorCode::kOpFailed, "The memory pool of {} bytes is not mapped.", pool.size());
  if (!isInput && !pool.writable())
    return fail(ErrorCode::kOpFailed, "The memory pool of {} bytes is read-only.", pool.size());
  return const_cast<uint8_t*>(pool.data()) + argument.offset;
}

Result<BoundRequest> checkRequest(const graph::Subgraph& main, const Request& request) {
  HEARTH_ASSIGN(const std::optional<Request> joined, joinMemories(request));
  const Request& placed = joined ? *joined : request;
  BoundRequest bound;
  bound.loopTimeout = placed.loopTimeout;
  HEARTH_TRY(checkArguments(main, main.inputs, placed.inputs, true, &bound, &bound.inputs));
  HEARTH_TRY(checkArguments(main, main.outputs, placed.outputs, false, &bound, &bound.outputs));
  return bound;
}

Status checkPoolsMapped(const graph::Model& model) {
  for (size_t i = 0; i < model.pools.size(); ++i)
    if (model.pools[i] == nullptr || (model.pools[i]->data() == nullptr && model.pools[i]->size()))
      return fail(ErrorCode::kOpFailed, "Pool {} of the model is not mapped.", i);
  return {};
}

Status checkPoolsWhole(const graph::Model& model) {
  if (memory::lossCount() == 0) [[likely]]
    return {};
  for (const memory::PoolRef& pool : model.pools)
    if (memory::areLost(pool->data(), pool->size()))
      return fail(ErrorCode::kOpFailed,
                  "Constants of the model were lost, since its file was truncated or cannot be "
                  "read; load it again.");
  return {};
}

Status checkMemoriesWhole(std::span<const memory::PoolRef> memories) {
  if (memory::lossCount() == 0) [[likely]]
    return {};
  for (const memory::PoolRef& memory : memories)
    if (memory::areLost(memory->data(), memory->size()))
      return fail(ErrorCode::kOpFailed,
                  "A memory of {} bytes was taken away while an execution used it.",
                  memory->size());
  return {};
}

}  // namespace hearth::hal
