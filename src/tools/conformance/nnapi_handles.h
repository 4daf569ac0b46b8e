// SPDX-License-Identifier: Apache-2.0
// Converts the C API's codes to errors, and makes and copies its memories.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "hearth/nnapi.hpp"

namespace hearth::conformance {

using ndk::BurstHandle;
using ndk::CompilationHandle;
using ndk::EventHandle;
using ndk::ExecutionHandle;
using ndk::MemoryDescHandle;
using ndk::MemoryHandle;
using ndk::ModelHandle;
using ndk::Out;

// The error of a code that is not NO_ERROR; `call` names the function.
Status check(int code, const char* call);

// Makes a device memory for one role of a finished compilation.
Status makeDeviceMemory(ANeuralNetworksCompilation* compilation, bool isInput, uint32_t index,
                        MemoryHandle* memory);
// Copy to and from a memory through a shared memory.
Status copyIn(const void* data, size_t size, ANeuralNetworksMemory* memory);
Status copyOut(ANeuralNetworksMemory* memory, void* data, size_t size);

}  // namespace hearth::conformance
