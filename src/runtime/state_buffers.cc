// SPDX-License-Identifier: Apache-2.0
#include "runtime/state_buffers.h"

#include <cstring>

#include "runtime/pool_layout.h"

namespace hearth::runtime {

Result<StateBuffers> StateBuffers::create(const Compilation& compilation) {
  StateBuffers buffers;
  uint64_t size = 0;
  for (const graph::StatePair& state : compilation.states()) {
    HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(compilation.input(state.input)));
    const uint64_t offset = placeInPool(bytes, &size);
    buffers.slots_.push_back({state.input, state.output, offset, bytes, &state.initialValue});
  }
  if (size == 0) return buffers;
  for (memory::PoolRef& side : buffers.sides_) {
    HEARTH_ASSIGN(side, memory::Pool::anonymous(size));
  }
  buffers.reset();
  return buffers;
}

void StateBuffers::reset() {
  current_ = 0;
  for (const Slot& slot : slots_) {
    if (slot.length == 0) continue;
    uint8_t* to = sides_[0]->mutableData() + slot.offset;
    if (slot.initialValue->empty())
      std::memset(to, 0, slot.length);
    else
      std::memcpy(to, slot.initialValue->data(), slot.length);
  }
}

void StateBuffers::bind(unsigned side, hal::Request* request) const {
  for (const Slot& slot : slots_) {
    hal::Argument argument;
    argument.kind = hal::Argument::Kind::kPool;
    argument.offset = slot.offset;
    argument.length = slot.length;
    argument.pool = sides_[side];
    request->inputs[slot.input] = argument;
    argument.pool = sides_[side ^ 1];
    request->outputs[slot.output] = argument;
  }
}

}  // namespace hearth::runtime
