// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/nnapi_handles.h"

#include <sys/mman.h>

#include <cstring>

#include "memory/pool.h"

namespace hearth::conformance {
namespace {

Status makeShared(size_t size, memory::PoolRef* pool, MemoryHandle* memory) {
  HEARTH_ASSIGN(*pool, memory::Pool::anonymous(size));
  return check(ANeuralNetworksMemory_createFromFd(size, PROT_READ | PROT_WRITE, (*pool)->fd(), 0,
                                                  Out(*memory)),
               "createFromFd");
}

}  // namespace

Status check(int code, const char* call) {
  if (code == ANEURALNETWORKS_NO_ERROR) return {};
  // Our error codes begin with NNAPI's.
  return fail(static_cast<ErrorCode>(code), "{} gives {}.", call,
              base::errorCodeName(static_cast<ErrorCode>(code)));
}

Status makeDeviceMemory(ANeuralNetworksCompilation* compilation, bool isInput, uint32_t index,
                        MemoryHandle* memory) {
  MemoryDescHandle desc;
  HEARTH_TRY(check(ANeuralNetworksMemoryDesc_create(Out(desc)), "MemoryDesc_create"));
  HEARTH_TRY(
      check(isInput ? ANeuralNetworksMemoryDesc_addInputRole(desc.get(), compilation, index, 1.0f)
                    : ANeuralNetworksMemoryDesc_addOutputRole(desc.get(), compilation, index, 1.0f),
            "MemoryDesc_addRole"));
  HEARTH_TRY(check(ANeuralNetworksMemoryDesc_finish(desc.get()), "MemoryDesc_finish"));
  return check(ANeuralNetworksMemory_createFromDesc(desc.get(), Out(*memory)), "createFromDesc");
}

Status copyIn(const void* data, size_t size, ANeuralNetworksMemory* memory) {
  memory::PoolRef pool;
  MemoryHandle shared;
  HEARTH_TRY(makeShared(size, &pool, &shared));
  std::memcpy(pool->mutableData(), data, size);
  return check(ANeuralNetworksMemory_copy(shared.get(), memory), "Memory_copy in");
}

Status copyOut(ANeuralNetworksMemory* memory, void* data, size_t size) {
  memory::PoolRef pool;
  MemoryHandle shared;
  HEARTH_TRY(makeShared(size, &pool, &shared));
  HEARTH_TRY(check(ANeuralNetworksMemory_copy(memory, shared.get()), "Memory_copy out"));
  std::memcpy(data, pool->data(), size);
  return {};
}

}  // namespace hearth::conformance
