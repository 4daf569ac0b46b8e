// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/plan/plan.h"

#include <algorithm>

#include "memory/arena.h"

namespace hearth::vulkan {
namespace {

uint64_t roundUp(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

TensorId rootId(const Plan& plan, TensorId id) {
  return static_cast<TensorId>(&plan.rootOf(id) - plan.tensors.data());
}

}  // namespace

void dropUnused(Plan* plan) {
  // Calls visit(id) for each place of the plan that names a tensor.
  const auto forEachUse = [plan](const auto& visit) {
    for (Dispatch& dispatch : plan->dispatches)
      for (Binding& binding : dispatch.bindings) visit(binding.tensor);
    for (std::vector<TensorId>* ids : {&plan->inputs, &plan->outputs})
      for (TensorId& id : *ids)
        if (id != kNoTensor) visit(id);
    if (plan->fault != kNoTensor) visit(plan->fault);
  };
  std::vector<bool> isUsed(plan->tensors.size());
  forEachUse([&](TensorId id) {
    for (; !isUsed[id]; id = plan->tensors[id].root) isUsed[id] = true;
  });
  std::vector<TensorId> places(plan->tensors.size(), kNoTensor);
  std::vector<PlannedTensor> kept;
  for (size_t i = 0; i < isUsed.size(); ++i) {
    if (!isUsed[i]) continue;
    places[i] = static_cast<TensorId>(kept.size());
    kept.push_back(std::move(plan->tensors[i]));
  }
  for (PlannedTensor& tensor : kept) tensor.root = places[tensor.root];
  forEachUse([&](TensorId& id) { id = places[id]; });
  plan->tensors = std::move(kept);
}

Status placeTensors(Plan* plan, uint64_t alignment, uint64_t limit) {
  constexpr size_t kNoBlock = SIZE_MAX;
  std::vector<memory::ArenaBlock> blocks;
  std::vector<TensorId> owners;
  std::vector<size_t> blockOf(plan->tensors.size(), kNoBlock);
  const auto use = [&](TensorId id, size_t step) {
    const TensorId root = rootId(*plan, id);
    const PlannedTensor& tensor = plan->tensors[root];
    if (tensor.place != PlannedTensor::Place::kArena) return;
    const auto now = static_cast<int32_t>(step);
    if (blockOf[root] == kNoBlock) {
      blockOf[root] = blocks.size();
      blocks.push_back({roundUp(tensor.bytes, alignment), now, now});
      owners.push_back(root);
    }
    memory::ArenaBlock& block = blocks[blockOf[root]];
    block.firstStep = std::min(block.firstStep, now);
    block.lastStep = std::max(block.lastStep, now);
  };
  // What is written comes before the inputs: of tensors of one size it is named if it does not fit.
  for (const bool isWritten : {true, false})
    for (size_t i = 0; i < plan->dispatches.size(); ++i)
      for (const Binding& binding : plan->dispatches[i].bindings)
        if (binding.isWritten == isWritten) use(binding.tensor, i + 1);
  // Step 0 copies the inputs in, the last one copies the outputs out.
  for (const TensorId input : plan->inputs)
    if (input != kNoTensor) use(input, 0);
  for (const TensorId output : plan->outputs) use(output, plan->dispatches.size() + 1);
  if (plan->fault != kNoTensor) use(plan->fault, plan->dispatches.size() + 1);

  const auto arenaBytes = memory::placeBlocks(blocks, limit);
  if (!arenaBytes) {
    const PlannedTensor& tensor = plan->tensors[owners[arenaBytes.error()]];
    return fail(ErrorCode::kOutOfMemory,
                "The activations need more than the limit of {} bytes; the tensor \"{}\" of {} "
                "bytes does not fit.",
                limit, tensor.name, tensor.bytes);
  }
  plan->arenaBytes = *arenaBytes;
  for (size_t i = 0; i < blocks.size(); ++i) plan->tensors[owners[i]].offset = blocks[i].offset;

  plan->constantBytes = 0;
  for (PlannedTensor& tensor : plan->tensors) {
    if (tensor.place != PlannedTensor::Place::kConstants) continue;
    tensor.offset = plan->constantBytes;
    plan->constantBytes += roundUp(tensor.bytes, alignment);
  }
  return {};
}

}  // namespace hearth::vulkan
