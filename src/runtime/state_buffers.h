// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "hal/device.h"
#include "memory/pool.h"
#include "runtime/compilation.h"

namespace hearth::runtime {

// Double buffer for the state tensors of one execution. A run reads the current side and writes the
// other, which becomes current only if the run succeeds. Used by one thread at a time.
//
// A state that one device reads and writes lies in the memory of that device, if it has memory for
// it. Other devices, which run what fails on those that the runtime has chosen, can read it once
// leaveDevices() has brought it into memory of the runtime.
class StateBuffers {
 public:
  // Starts at the initial values. Takes no memory if the compilation has no state. The compilation
  // must outlive the buffers. Errors as reset(), and of memory that is not there.
  static Result<StateBuffers> create(const Compilation& compilation);

  // The side that the next run reads: 0 or 1.
  unsigned current() const { return current_; }
  void flip() {
    if (!slots_.empty()) current_ ^= 1;
  }
  // Whether a state lies in the memory of a device.
  bool isOnDevice() const {
    return std::ranges::any_of(slots_, [](const Slot& slot) { return slot.onDevice.has_value(); });
  }
  // Brings all states, as they are, into memory that every device reads; requests that were bound
  // before are then of no use. Errors of hal::Buffer::copyTo(), where the state is lost with its
  // device, and of memory that is not there: all stays where it was.
  Status leaveDevices();

  // Back to the initial values. A state that was lost with its device gets new memory, of the
  // runtime if the device has none any more and the client has not named it; requests that were
  // bound before are then of no use. Errors of hal::Device::allocate() and hal::Buffer::copyFrom().
  Status reset();

  // Sets the state arguments of a run that reads `side`. The request's lists must have their final
  // sizes.
  void bind(unsigned side, hal::Request* request) const;

 private:
  // A state in the memory of a device.
  struct OnDevice {
    std::shared_ptr<hal::Device> device;
    hal::BufferDescription description;
    std::vector<hal::BufferRole> roles;
    std::array<std::unique_ptr<hal::Buffer>, 2> sides;

    Status allocate();
    Status write(const memory::PoolRef& value) const {
      return sides[0]->copyFrom(value, description.dimensions);
    }
  };
  struct Slot {
    uint32_t input;
    uint32_t output;
    uint64_t length;
    const std::vector<uint8_t>* initialValue;  // of the compilation, which outlives this
    std::optional<OnDevice> onDevice;
    uint64_t offset = 0;  // in the pools of sides_, of a state that is not on a device
  };

  // Has all slots in memory of the runtime, with room for their values.
  struct InRuntime {
    std::array<memory::PoolRef, 2> sides;
    std::vector<uint64_t> offsets;  // by slot
  };
  Result<InRuntime> makeRoom() const;
  void moveTo(InRuntime room);
  // Writes the initial value of a slot on a device, in new memory if the old is lost.
  static Status resetOnDevice(const Slot& slot, OnDevice* onDevice);
  // None where no single device has memory for the state.
  static std::optional<OnDevice> placeOnDevice(const Compilation& compilation,
                                               const graph::StatePair& state);
  // Writes the value with which a state begins to memory of its size.
  static void writeInitialValue(const Slot& slot, uint8_t* to);

  std::vector<Slot> slots_;
  std::array<memory::PoolRef, 2> sides_;
  unsigned current_ = 0;
  bool mayLeave_ = false;  // whether the runtime has chosen the devices
};

}  // namespace hearth::runtime
