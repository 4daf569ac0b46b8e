// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/result.h"
#include "ipc/client_memory.h"
#include "memory/budget.h"

namespace hearth::ipc {

// What a driver allocates for one client to prepare a model and to compute it, or as memory of the
// device for arguments. It counts among the client's memories until the driver frees it, or the
// client has neither the model nor an execution of it, or not the buffer: other clients of the same
// model may use it for longer, and have their own. Thread-safe.
class ModelMemory final : public memory::Budget, public std::enable_shared_from_this<ModelMemory> {
 public:
  explicit ModelMemory(ClientMemories memories) : memories_(std::move(memories)) {}

  Result<std::shared_ptr<void>> reserve(uint64_t bytes) override;

  // How many bytes are reserved.
  uint64_t bytes() const;

 private:
  struct Room {
    uint64_t bytes = 0;
    std::shared_ptr<void> held;
  };
  void giveBack(uint64_t number);

  ClientMemories memories_;
  mutable std::mutex mutex_;  // guards what follows
  uint64_t lastNumber_ = 0;
  uint64_t bytes_ = 0;
  std::map<uint64_t, Room> rooms_;
};

}  // namespace hearth::ipc
