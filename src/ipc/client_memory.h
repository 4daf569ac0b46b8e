// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "driver.capnp.h"
#include "memory/pool.h"

namespace hearth::ipc {

// Maps memory of a client into a host. The client may do with it what it likes at any time: a part
// that it takes away reads as zeros, and the host learns of it by memory::areLost(). A copy of this
// counts with it. Thread-safe.
class ClientMemories {
 public:
  // `mostMemories` and `mostBytes` limit what is mapped for the client at a time.
  ClientMemories(size_t mostMemories, uint64_t mostBytes);

  // Maps what the message names. Errors: kBadData for a descriptor that the message does not have,
  // or that is neither a file of enough bytes nor a dma-buf; kResourceExhaustedTransient beyond the
  // limits; kOutOfMemory, kIo.
  Result<memory::PoolRef> map(schema::Memory::Reader memory,
                              const std::vector<base::Descriptor>& descriptors);

  // Takes room for bytes of the host's own that it keeps for the client, as long as the result
  // exists. kResourceExhaustedTransient beyond the limit.
  Result<std::shared_ptr<void>> reserve(uint64_t bytes);

  // Takes the place of memories that are mapped for others, too, as long as the result exists.
  // kResourceExhaustedTransient beyond the limit.
  Result<std::shared_ptr<void>> hold(size_t memories);

  // How many memories are mapped.
  size_t count() const;

 private:
  struct Use;
  std::shared_ptr<Use> use_;
};

}  // namespace hearth::ipc
