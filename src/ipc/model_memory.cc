// SPDX-License-Identifier: Apache-2.0
#include "ipc/model_memory.h"

#include <utility>

namespace hearth::ipc {

Result<std::shared_ptr<void>> ModelMemory::reserve(uint64_t bytes) {
  HEARTH_ASSIGN(std::shared_ptr<void> held, memories_.reserve(bytes));
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = ++lastNumber_;
    rooms_.emplace(number, Room{bytes, std::move(held)});
    bytes_ += bytes;
  }
  return std::shared_ptr<void>(nullptr, [weak = weak_from_this(), number](void*) {
    if (const auto self = weak.lock()) self->giveBack(number);
  });
}

uint64_t ModelMemory::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void ModelMemory::giveBack(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = rooms_.find(number);
  bytes_ -= found->second.bytes;
  rooms_.erase(found);
}

}  // namespace hearth::ipc
