// SPDX-License-Identifier: Apache-2.0
#include "runtime/state_buffers.h"

#include <cstring>
#include <utility>

#include "base/log.h"
#include "runtime/pool_layout.h"

namespace hearth::runtime {

Status StateBuffers::OnDevice::allocate() {
  for (std::unique_ptr<hal::Buffer>& side : sides) {
    HEARTH_ASSIGN(side, device->allocate(description, roles));
    if (side == nullptr || side->token() == 0)
      return fail(ErrorCode::kOpFailed, "The device {} allocates no buffer.", device->name());
  }
  return {};
}

std::optional<StateBuffers::OnDevice> StateBuffers::placeOnDevice(const Compilation& compilation,
                                                                  const graph::StatePair& state) {
  OnDevice placed;
  placed.description.dimensions = compilation.input(state.input).dimensions;
  const PartitionedModel& parts = compilation.parts();
  for (const bool isInput : {true, false}) {
    for (const ArgumentUse& use :
         isInput ? parts.inputUses[state.input] : parts.outputUses[state.output]) {
      if (use.device == nullptr || (placed.device != nullptr && placed.device != use.device))
        return std::nullopt;
      placed.device = use.device;
      placed.roles.push_back({use.prepared, isInput, use.index});
    }
  }
  if (placed.device == nullptr) return std::nullopt;
  if (const Status allocated = placed.allocate(); !allocated) {
    base::logDebug("A state lies in memory of the runtime. {}", allocated.error().toString());
    return std::nullopt;
  }
  return placed;
}

Result<StateBuffers> StateBuffers::create(const Compilation& compilation) {
  StateBuffers buffers;
  buffers.mayLeave_ = !compilation.hasExplicitDevices();
  uint64_t size = 0;
  for (const graph::StatePair& state : compilation.states()) {
    HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(compilation.input(state.input)));
    Slot slot{state.input, state.output, bytes, &state.initialValue, std::nullopt};
    if (bytes != 0) slot.onDevice = placeOnDevice(compilation, state);
    if (!slot.onDevice) slot.offset = placeInPool(bytes, &size);
    buffers.slots_.push_back(std::move(slot));
  }
  if (size != 0) {
    for (memory::PoolRef& side : buffers.sides_) {
      HEARTH_ASSIGN(side, memory::Pool::anonymous(size));
    }
  }
  HEARTH_TRY(buffers.reset());
  return buffers;
}

void StateBuffers::writeInitialValue(const Slot& slot, uint8_t* to) {
  if (slot.initialValue->empty())
    std::memset(to, 0, slot.length);
  else
    std::memcpy(to, slot.initialValue->data(), slot.length);
}

Result<StateBuffers::InRuntime> StateBuffers::makeRoom() const {
  InRuntime room;
  uint64_t size = 0;
  for (const Slot& slot : slots_) room.offsets.push_back(placeInPool(slot.length, &size));
  for (memory::PoolRef& side : room.sides) {
    HEARTH_ASSIGN(side, memory::Pool::anonymous(size));
  }
  return room;
}

void StateBuffers::moveTo(InRuntime room) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    slots_[i].offset = room.offsets[i];
    slots_[i].onDevice.reset();
  }
  sides_ = std::move(room.sides);
}

Status StateBuffers::leaveDevices() {
  HEARTH_ASSIGN(InRuntime room, makeRoom());
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (slot.length == 0) continue;
    const uint8_t* from = nullptr;
    memory::PoolRef value;
    if (slot.onDevice) {
      HEARTH_ASSIGN(value, memory::Pool::anonymous(slot.length));
      HEARTH_TRY(slot.onDevice->sides[current_]->copyTo(value));
      from = value->data();
    } else {
      from = sides_[current_]->data() + slot.offset;
    }
    std::memcpy(room.sides[current_]->mutableData() + room.offsets[i], from, slot.length);
  }
  moveTo(std::move(room));
  return {};
}

Status StateBuffers::resetOnDevice(const Slot& slot, OnDevice* onDevice) {
  HEARTH_ASSIGN(const memory::PoolRef value, memory::Pool::anonymous(slot.length));
  writeInitialValue(slot, value->mutableData());
  if (onDevice->write(value)) return {};
  // The device may have been started again.
  HEARTH_TRY(onDevice->allocate());
  return onDevice->write(value);
}

Status StateBuffers::reset() {
  current_ = 0;
  for (Slot& slot : slots_) {
    if (!slot.onDevice) continue;
    const Status status = resetOnDevice(slot, &*slot.onDevice);
    if (status) continue;
    if (!mayLeave_) return status;
    base::logDebug("States lie in memory of the runtime. {}", status.error().toString());
    HEARTH_ASSIGN(InRuntime room, makeRoom());
    moveTo(std::move(room));
    break;
  }
  for (const Slot& slot : slots_)
    if (slot.length != 0 && !slot.onDevice)
      writeInitialValue(slot, sides_[0]->mutableData() + slot.offset);
  return {};
}

void StateBuffers::bind(unsigned side, hal::Request* request) const {
  const auto argumentOf = [&](const Slot& slot, unsigned at) {
    hal::Argument argument;
    if (slot.onDevice) {
      argument.kind = hal::Argument::Kind::kBuffer;
      argument.token = slot.onDevice->sides[at]->token();
      return argument;
    }
    argument.kind = hal::Argument::Kind::kPool;
    argument.offset = slot.offset;
    argument.length = slot.length;
    argument.pool = sides_[at];
    return argument;
  };
  for (const Slot& slot : slots_) {
    request->inputs[slot.input] = argumentOf(slot, side);
    request->outputs[slot.output] = argumentOf(slot, side ^ 1);
  }
}

}  // namespace hearth::runtime
