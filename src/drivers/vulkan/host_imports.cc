// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/host_imports.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/log.h"

namespace hearth::vulkan {
namespace {

// An argument in a memory.
struct Use {
  uint8_t* data = nullptr;
  uint64_t bytes = 0;
  HostPlace* place = nullptr;
  bool isWritten = false;

  const uint8_t* end() const { return data + bytes; }
};

// Whether one is written where another one lies: the GPU would read what it writes.
bool conflict(const std::vector<Use>& uses) {
  for (size_t i = 0; i < uses.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if ((uses[i].isWritten || uses[j].isWritten) && uses[i].data < uses[j].end() &&
          uses[j].data < uses[i].end())
        return true;
  return false;
}

// Makes a buffer of a dma-buf that the arguments lie in.
Status importDmaBuf(const std::shared_ptr<Gpu>& gpu, const memory::PoolRef& pool,
                    const std::vector<Use>& uses, DeviceArguments* arguments) {
  const auto offsetOf = [&](const uint8_t* pointer) {
    return pool->offset() + static_cast<uint64_t>(pointer - pool->data());
  };
  uint64_t bytes = 0;
  for (const Use& use : uses) bytes = std::max(bytes, offsetOf(use.end()));
  HEARTH_ASSIGN(std::shared_ptr<Buffer> buffer, Buffer::ofDmaBuf(gpu, pool->fd(), bytes));
  for (const Use& use : uses) *use.place = {buffer, offsetOf(use.data)};
  arguments->dmaBufs.push_back({pool, std::move(buffer)});
  return {};
}

// Makes a buffer of the pages that the arguments lie in.
Status importPages(const std::shared_ptr<Gpu>& gpu, const memory::PoolRef& pool,
                   const std::vector<Use>& uses) {
  const uint64_t alignment = gpu->facts().hostAlignment;
  const auto addressOf = [](const uint8_t* pointer) {
    return reinterpret_cast<uintptr_t>(pointer);
  };
  uintptr_t first = UINTPTR_MAX, last = 0;
  for (const Use& use : uses) {
    first = std::min(first, addressOf(use.data));
    last = std::max(last, addressOf(use.end()));
  }
  const uintptr_t before = first % alignment;
  uint8_t* const begin =
      std::ranges::min_element(uses, {}, [](const Use& use) { return use.data; })->data - before;
  const uint64_t bytes = (last - first + before + alignment - 1) / alignment * alignment;
  HEARTH_ASSIGN(std::shared_ptr<Buffer> buffer, Buffer::ofHost(gpu, begin, bytes, pool));
  for (const Use& use : uses) *use.place = {buffer, static_cast<uint64_t>(use.data - begin)};
  return {};
}

}  // namespace

void importMemories(const std::shared_ptr<Gpu>& gpu, const Plan& plan, const hal::Request& request,
                    const hal::BoundRequest& bound, DeviceArguments* arguments) {
  if (!gpu->importsHostMemory() && !gpu->facts().importsDmaBufs) return;
  std::map<memory::PoolRef, std::vector<Use>> pools;
  const auto add = [&](const hal::Argument& argument, const ops::RunArgument& given,
                       TensorId tensor, HostPlace* place, bool isWritten) {
    if (argument.kind != hal::Argument::Kind::kPool || tensor == kNoTensor || !given.isPresent)
      return;
    const uint64_t bytes = plan.tensors[tensor].bytes;
    if (bytes == 0 || given.length < bytes) return;
    // It has been moved, since it overlaps an argument in another memory of the same file.
    if (given.data != argument.pool->data() + argument.offset) return;
    pools[argument.pool].push_back({static_cast<uint8_t*>(given.data), bytes, place, isWritten});
  };
  for (size_t i = 0; i < plan.inputs.size(); ++i)
    add(request.inputs[i], bound.inputs[i], plan.inputs[i], &arguments->hostInputs[i], false);
  for (size_t i = 0; i < plan.outputs.size(); ++i)
    add(request.outputs[i], bound.outputs[i], plan.outputs[i], &arguments->hostOutputs[i], true);
  for (const auto& [pool, uses] : pools) {
    uint64_t bytes = 0;
    for (const Use& use : uses) bytes += use.bytes;
    if (bytes < gpu->facts().leastImport || conflict(uses)) continue;
    if (gpu->dmaBufCalls().isDmaBuf(pool->fd())) {
      // Its pages are not tried below: few drivers take them, and one that has refused several
      // memories is asked for no other. What this one says of a dma-buf is of no other.
      if (!gpu->facts().importsDmaBufs) continue;
      if (const Status imported = importDmaBuf(gpu, pool, uses, arguments); !imported)
        base::logDebug("A dma-buf is copied for the GPU {}. {}", gpu->facts().name,
                       imported.error().toString());
      continue;
    }
    // What cannot be written is not tried: some drivers fail in other ways after they have refused.
    if (!pool->writable() || !gpu->importsHostMemory(pool)) continue;
    if (const Status imported = importPages(gpu, pool, uses); !imported) {
      gpu->noteRefusedImport(pool);
      base::logInfo(
          "{} copied for the GPU {}. {}",
          gpu->importsHostMemory() ? "A memory of the client is" : "Memories of clients are",
          gpu->facts().name, imported.error().toString());
    }
  }
}

}  // namespace hearth::vulkan
