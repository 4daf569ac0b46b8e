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
  if (!compilation.hasExplicitDevices()) return std::nullopt;
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

Status StateBuffers::reset() {
  current_ = 0;
  for (Slot& slot : slots_) {
    if (slot.length == 0) continue;
    if (!slot.onDevice) {
      writeInitialValue(slot, sides_[0]->mutableData() + slot.offset);
      continue;
    }
    HEARTH_ASSIGN(const memory::PoolRef value, memory::Pool::anonymous(slot.length));
    writeInitialValue(slot, value->mutableData());
    if (slot.onDevice->write(value)) continue;
    // The device may have been started again.
    HEARTH_TRY(slot.onDevice->allocate());
    HEARTH_TRY(slot.onDevice->write(value));
  }
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
