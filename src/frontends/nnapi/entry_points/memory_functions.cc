// SPDX-License-Identifier: Apache-2.0
// ANeuralNetworksMemory_* and ANeuralNetworksMemoryDesc_* of the C API.
#include <utility>

#include "android/NeuralNetworks.h"
#include "frontends/nnapi/entry_points/call.h"
#include "frontends/nnapi/objects/hardware_buffer.h"
#include "frontends/nnapi/objects/memory.h"
#include "frontends/nnapi/objects/memory_desc.h"

using namespace hearth;
using namespace hearth::nnapi;

int ANeuralNetworksMemory_createFromFd(size_t size, int protect, int fd, size_t offset,
                                       ANeuralNetworksMemory** memory) {
  return callToMake(__func__, "memory", memory, [&]() -> Result<ANeuralNetworksMemory*> {
    HEARTH_ASSIGN(auto made, memoryOfFile(size, protect, fd, offset));
    return new ANeuralNetworksMemory{std::move(made)};
  });
}

int ANeuralNetworksMemory_createFromAHardwareBuffer(const AHardwareBuffer* ahwb,
                                                    ANeuralNetworksMemory** memory) {
  return callToMake(__func__, "memory", memory, [&]() -> Result<ANeuralNetworksMemory*> {
    HEARTH_NOT_NULL(ahwb);
    const bool isBlob = ahwb->description.format == AHARDWAREBUFFER_FORMAT_BLOB;
    return new ANeuralNetworksMemory{isBlob ? memoryOfPool(ahwb->pool) : memoryOfImage(ahwb->pool)};
  });
}

int ANeuralNetworksMemory_createFromDesc(const ANeuralNetworksMemoryDesc* desc,
                                         ANeuralNetworksMemory** memory) {
  return callToMake(__func__, "memory", memory, [&]() -> Result<ANeuralNetworksMemory*> {
    HEARTH_NOT_NULL(desc);
    HEARTH_ASSIGN(auto made, desc->createMemory());
    return new ANeuralNetworksMemory{std::move(made)};
  });
}

int ANeuralNetworksMemory_copy(const ANeuralNetworksMemory* src, const ANeuralNetworksMemory* dst) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(src);
    HEARTH_NOT_NULL(dst);
    return copyMemory(*src->memory, *dst->memory);
  });
}

void ANeuralNetworksMemory_free(ANeuralNetworksMemory* memory) {
  delete memory;
}

int ANeuralNetworksMemoryDesc_create(ANeuralNetworksMemoryDesc** desc) {
  return callToMake(__func__, "desc", desc, [] { return new ANeuralNetworksMemoryDesc(); });
}

void ANeuralNetworksMemoryDesc_free(ANeuralNetworksMemoryDesc* desc) {
  delete desc;
}

int ANeuralNetworksMemoryDesc_addInputRole(ANeuralNetworksMemoryDesc* desc,
                                           const ANeuralNetworksCompilation* compilation,
                                           uint32_t index, float frequency) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(desc);
    HEARTH_NOT_NULL(compilation);
    return desc->addRole(*compilation, true, index, frequency);
  });
}

int ANeuralNetworksMemoryDesc_addOutputRole(ANeuralNetworksMemoryDesc* desc,
                                            const ANeuralNetworksCompilation* compilation,
                                            uint32_t index, float frequency) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(desc);
    HEARTH_NOT_NULL(compilation);
    return desc->addRole(*compilation, false, index, frequency);
  });
}

int ANeuralNetworksMemoryDesc_setDimensions(ANeuralNetworksMemoryDesc* desc, uint32_t rank,
                                            const uint32_t* dimensions) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(desc);
    if (rank != 0) HEARTH_NOT_NULL(dimensions);
    return desc->setDimensions({dimensions, rank});
  });
}

int ANeuralNetworksMemoryDesc_finish(ANeuralNetworksMemoryDesc* desc) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(desc);
    return desc->finish();
  });
}
