// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/result.h"
#include "graph/model.h"
#include "hal/device.h"
#include "memory/pool.h"

namespace hearth::runtime {
class Compilation;
}

namespace hearth::nnapi {

// The part of a memory that an argument uses. (0, 0) means all of a memory that is used as a whole.
struct MemoryRange {
  uint64_t offset = 0;
  uint64_t length = 0;
};

// An input or output of a compilation, as role of a memory.
struct ArgumentRole {
  const runtime::Compilation* compiled = nullptr;
  bool isInput = false;
  uint32_t index = 0;

  auto operator<=>(const ArgumentRole&) const = default;
};

// Bytes on their way from one memory to another.
struct MemoryContents {
  memory::PoolRef pool;
  uint64_t length = 0;
  // Of a device memory: what kind of tensor it is. A plain memory has none.
  std::optional<graph::Operand> operand;
};

// What an ANeuralNetworksMemory stands for. Models and executions share it. Thread-safe.
class Memory {
 public:
  virtual ~Memory() = default;

  // Whether it is used as a whole: with offset and length 0.
  virtual bool isWhole() const = 0;

  // Bytes of a constant. kBadData for a range outside, or a memory that cannot hold constants;
  // kUnmappable when it cannot be mapped.
  virtual Result<memory::PoolRef> constantPool(const MemoryRange& range) = 0;

  // Whether it can be an argument in this role; `dimensions` are those of model and type argument
  // together, the result what the memory's descriptor makes of them. kBadData says why not.
  virtual Result<graph::Dimensions> checkArgument(const ArgumentRole& role,
                                                  const graph::Dimensions& dimensions,
                                                  const MemoryRange& range) = 0;

  // The argument for a driver, at the start of a computation. kOpFailed when the memory has no
  // value for an input, shrank since or cannot be mapped.
  virtual Result<hal::Argument> argument(bool isInput, const graph::Dimensions& dimensions,
                                         const MemoryRange& range) = 0;

  // What it holds, to be copied. kBadData when it has no value yet, kUnmappable for an image.
  virtual Result<MemoryContents> contents() = 0;
  // Takes a copy of the bytes. kBadData when they do not fit; a device memory then has no value.
  virtual Status setContents(const MemoryContents& contents) = 0;
  // After a copy to it that failed before setContents().
  virtual void loseContents() {}

  // Whether argument() may answer differently each time, so that it has to be asked anew.
  virtual bool hasState() const { return false; }

  // After a computation that had it as output. `dimensions` are empty when it failed.
  virtual void finishOutput(bool succeeded, const graph::Dimensions& dimensions) {
    (void)succeeded;
    (void)dimensions;
  }
};

// Memory with a size, in bytes that processes share.
class SizedMemory : public Memory {
 public:
  bool isWhole() const override { return false; }
  uint64_t size() const { return size_; }
  // The mapped bytes, mapped at the first call. kUnmappable when that is not possible, kOpFailed
  // when the file became shorter since.
  Result<memory::PoolRef> pool();

  Result<memory::PoolRef> constantPool(const MemoryRange& range) override;
  Result<graph::Dimensions> checkArgument(const ArgumentRole& role,
                                          const graph::Dimensions& dimensions,
                                          const MemoryRange& range) override;
  Result<hal::Argument> argument(bool isInput, const graph::Dimensions& dimensions,
                                 const MemoryRange& range) override;
  Result<MemoryContents> contents() override;
  Status setContents(const MemoryContents& contents) override;

 protected:
  explicit SizedMemory(uint64_t size) : size_(size) {}
  virtual Result<memory::PoolRef> map() = 0;
  // Whether the bytes are still there, before each use.
  virtual Status checkStillThere() { return {}; }

 private:
  const uint64_t size_;
  base::Mutex mutex_;
  memory::PoolRef pool_;
};

// `size` bytes of a file from `offset` on; `protect` is of PROT_READ and PROT_WRITE. kBadData for
// no bytes, a range past 2^63, other bits or a descriptor that is not open.
Result<std::shared_ptr<Memory>> memoryOfFile(uint64_t size, int protect, int fd, uint64_t offset);

// Bytes that the runtime has already: a BLOB hardware buffer.
std::shared_ptr<Memory> memoryOfPool(memory::PoolRef pool);

// A hardware buffer with a format: used as a whole, as argument only, for operands of its size.
std::shared_ptr<Memory> memoryOfImage(memory::PoolRef pool);

// Copies what `source` holds. To itself it is nothing. A copy that fails leaves a device memory
// without value.
Status copyMemory(Memory& source, Memory& destination);

}  // namespace hearth::nnapi

struct ANeuralNetworksMemory {
  const std::shared_ptr<hearth::nnapi::Memory> memory;
};
