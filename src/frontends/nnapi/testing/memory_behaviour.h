// SPDX-License-Identifier: Apache-2.0
// A fixture for tests of memories in the C API.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "base/descriptor.h"
#include "frontends/nnapi/testing/fake_device_test.h"

namespace hearth::nnapi {

// A memfd with these floats from `offset` on.
inline base::Descriptor fileOf(const std::vector<float>& values, size_t offset = 0) {
  base::Descriptor file(::memfd_create("test", MFD_CLOEXEC));
  const auto size = static_cast<ssize_t>(values.size() * sizeof(float));
  EXPECT_EQ(
      ::pwrite(file.get(), values.data(), static_cast<size_t>(size), static_cast<off_t>(offset)),
      size);
  return file;
}

// The memory of a part of a file.
inline ndk::MemoryHandle memoryOf(const base::Descriptor& file, size_t size, size_t offset = 0,
                                  int protect = PROT_READ | PROT_WRITE) {
  ndk::MemoryHandle memory;
  ndk::check(
      ANeuralNetworksMemory_createFromFd(size, protect, file.get(), offset, ndk::Out(memory)),
      "createFromFd");
  return memory;
}

// Copies to and from memories, and memories as arguments of addModel().
class MemoryBehaviour : public FakeDeviceTest {
 protected:
  static ndk::Compilation compileForOne(const ndk::Model& model) {
    return compileFor(model, {ndk::devices()[0]});
  }
  static int setInput(const ndk::Execution& execution, int32_t index,
                      const ndk::MemoryHandle& memory, size_t offset, size_t length) {
    return ANeuralNetworksExecution_setInputFromMemory(execution.get(), index, nullptr,
                                                       memory.get(), offset, length);
  }
  static int setOutput(const ndk::Execution& execution, int32_t index,
                       const ndk::MemoryHandle& memory, size_t offset, size_t length) {
    return ANeuralNetworksExecution_setOutputFromMemory(execution.get(), index, nullptr,
                                                        memory.get(), offset, length);
  }
  // A device memory for input 0 and output 0 of addModel().
  static ndk::MemoryHandle deviceMemory(const ndk::Compilation& compilation) {
    ndk::MemoryDescHandle desc;
    ndk::check(ANeuralNetworksMemoryDesc_create(ndk::Out(desc)), "MemoryDesc_create");
    ndk::check(ANeuralNetworksMemoryDesc_addInputRole(desc.get(), compilation.get(), 0, 1),
               "addInputRole");
    ndk::check(ANeuralNetworksMemoryDesc_addOutputRole(desc.get(), compilation.get(), 0, 0.5f),
               "addOutputRole");
    ndk::check(ANeuralNetworksMemoryDesc_finish(desc.get()), "MemoryDesc_finish");
    ndk::MemoryHandle memory;
    ndk::check(ANeuralNetworksMemory_createFromDesc(desc.get(), ndk::Out(memory)),
               "createFromDesc");
    return memory;
  }
  static int copyIn(const std::vector<float>& values, const ndk::MemoryHandle& memory) {
    const base::Descriptor file = fileOf(values);
    const ndk::MemoryHandle source = memoryOf(file, values.size() * sizeof(float));
    return ANeuralNetworksMemory_copy(source.get(), memory.get());
  }
  static std::vector<float> copyOut(const ndk::MemoryHandle& memory, size_t count) {
    std::vector<float> values(count);
    const base::Descriptor file = fileOf(values);
    const ndk::MemoryHandle target = memoryOf(file, count * sizeof(float));
    ndk::check(ANeuralNetworksMemory_copy(memory.get(), target.get()), "Memory_copy");
    EXPECT_EQ(::pread(file.get(), values.data(), count * sizeof(float), 0),
              static_cast<ssize_t>(count * sizeof(float)));
    return values;
  }

  const std::vector<float> a_ = {1, 2};
};

}  // namespace hearth::nnapi
