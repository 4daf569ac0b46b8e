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

// Bytes that are copied from one memory to another.
struct MemoryContents {
  memory::PoolRef pool;
  uint64_t length = 0;
  // The tensor in a device memory; a plain memory has none.
  std::optional<graph::Operand> operand;
};

// The object behind an ANeuralNetworksMemory. Models and executions share it. Thread-safe.
class Memory {
 public:
  virtual ~Memory() = default;

  // Whether arguments use the whole memory, with offset and length 0.
  virtual bool isWhole() const = 0;

  // The bytes of a constant. kBadData for a range outside the memory, or a memory that cannot hold
  // constants; kUnmappable when it cannot be mapped.
  virtual Result<memory::PoolRef> constantPool(const MemoryRange& range) = 0;

  // Checks that the memory can be an argument in this role. `dimensions` are combined from the
  // model and the type argument; returns them combined with the memory's. kBadData says why it
  // cannot.
  virtual Result<graph::Dimensions> checkArgument(const ArgumentRole& role,
                                                  const graph::Dimensions& dimensions,
                                                  const MemoryRange& range) = 0;

  // Returns the argument for the driver, at the start of a computation. kOpFailed when the memory
  // has no value for an input, has shrunk or cannot be mapped.
  virtual Result<hal::Argument> argument(bool isInput, const graph::Dimensions& dimensions,
                                         const MemoryRange& range) = 0;

  // The same of an input that an earlier computation may still have to write. kUnsupported where
  // that may change the dimensions.
  virtual Result<hal::Argument> laterArgument(const graph::Dimensions& dimensions,
                                              const MemoryRange& range) {
    return argument(true, dimensions, range);
  }
  // Whether such an input had a value after all, else kOpFailed.
  virtual Status checkValue() { return {}; }

  // The contents, to be copied. kBadData when the memory has no value yet, kUnmappable for an
  // image.
  virtual Result<MemoryContents> contents() = 0;
  // Copies the bytes into the memory. kBadData when they do not fit; a device memory then has no
  // value.
  virtual Status setContents(const MemoryContents& contents) = 0;
  // Called when a copy to this memory fails before setContents().
  virtual void loseContents() {}

  // Makes room for an output of these dimensions, which a computation found to be too large.
  // Returns false where the size of the memory is fixed. Computations that use the memory go on
  // with the bytes that they have.
  virtual Result<bool> grow(const graph::Dimensions& /*dimensions*/) { return false; }

  // Whether the result of argument() changes, so that each computation must call it anew.
  virtual bool hasState() const { return false; }

  // Called after a computation that had this memory as output. `dimensions` are empty when it
  // failed.
  virtual void finishOutput(bool succeeded, const graph::Dimensions& dimensions) {
    (void)succeeded;
    (void)dimensions;
  }
};

// Memory of a given size that processes can share.
class SizedMemory : public Memory {
 public:
  bool isWhole() const override { return false; }
  uint64_t size() const { return size_; }
  // The mapped bytes; the first call maps them. kUnmappable when that is not possible, kOpFailed
  // when the file has become shorter since.
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
  // Called before each use; fails when the file no longer has all bytes.
  virtual Status checkStillThere() { return {}; }

 private:
  const uint64_t size_;
  base::Mutex mutex_;
  memory::PoolRef pool_;
};

// `size` bytes of a file from `offset` on; `protect` combines PROT_READ and PROT_WRITE. The
// descriptor is duplicated. kBadData for a size of 0, a range past 2^63, other bits or a descriptor
// that is not open.
Result<std::shared_ptr<Memory>> memoryOfFile(uint64_t size, int protect, int fd, uint64_t offset);

// The memory of a BLOB hardware buffer.
std::shared_ptr<Memory> memoryOfPool(memory::PoolRef pool);

// The memory of a hardware buffer with a pixel format: used as a whole, only as an argument, and
// only for operands of its size.
std::shared_ptr<Memory> memoryOfImage(memory::PoolRef pool);

// Copies the contents of `source`; does nothing if both are the same memory. A copy that fails
// leaves a device memory without value.
Status copyMemory(Memory& source, Memory& destination);

}  // namespace hearth::nnapi

struct ANeuralNetworksMemory {
  const std::shared_ptr<hearth::nnapi::Memory> memory;
};
