// SPDX-License-Identifier: Apache-2.0
// The part of Execution that takes arguments.
#include <utility>

#include "base/log.h"
#include "frontends/nnapi/objects/execution.h"
#include "frontends/nnapi/objects/operand_type.h"

namespace hearth::nnapi {
namespace {

bool isKnown(const graph::Operand& operand, const graph::Dimensions& dimensions) {
  graph::Operand sized;
  sized.type = operand.type;
  sized.isRankZeroTensor = operand.isRankZeroTensor;
  sized.driverElementSize = operand.driverElementSize;
  sized.dimensions = dimensions;
  return graph::isFullySpecified(sized);
}

Result<uint64_t> bytesOf(const graph::Operand& operand, const graph::Dimensions& dimensions) {
  graph::Operand sized = operand;
  sized.dimensions = dimensions;
  return graph::byteSize(sized);
}

}  // namespace

// The dimensions of the model's operand, completed by the type argument.
Result<graph::Dimensions> Execution::specify(const graph::Operand& operand,
                                             const ANeuralNetworksOperandType* type) const {
  if (type == nullptr) return operand.dimensions;
  HEARTH_ASSIGN(const graph::Operand given, toOperand(*type));
  const bool isSame = given.type == operand.type && given.scale == operand.scale &&
                      given.zeroPoint == operand.zeroPoint;
  if (!isSame && compiled_->isFirstRemark())
    base::logWarn(
        "An argument's type is {} (scale {}, zero point {}), the model has {} (scale {}, zero "
        "point {}); only its dimensions count. Other such arguments of this compilation are not "
        "reported.",
        graph::describe(given), given.scale, given.zeroPoint, graph::describe(operand),
        operand.scale, operand.zeroPoint);
  const graph::Dimensions& known = operand.dimensions;
  bool fits = known.empty() || known.size() == given.dimensions.size();
  for (size_t i = 0; fits && i < known.size(); ++i)
    fits = known[i] == 0 || known[i] == given.dimensions[i];
  if (graph::isScalar(operand.type)) fits = given.dimensions.empty();
  if (!fits)
    return fail(ErrorCode::kBadData, "The type argument is {}, the model has {}.",
                graph::describe(given), graph::describe(operand));
  return given.dimensions;
}

Status Execution::requireChangeable() const {
  if (runs_->isInFlight()) return fail(ErrorCode::kBadState, "The execution is in flight.");
  if (!isDone_ || isReusable_) return {};
  return fail(ErrorCode::kBadState, "The execution has computed already.");
}

Result<Execution::Slot*> Execution::slotToSet(std::vector<Slot>* slots, int32_t index,
                                              const char* side) {
  HEARTH_TRY(requireChangeable());
  if (index < 0 || static_cast<size_t>(index) >= slots->size())
    return fail(ErrorCode::kBadData, "There is no {} {}; the model has {}.", side, index,
                slots->size());
  Slot* const slot = &(*slots)[static_cast<size_t>(index)];
  if (slot->isSet && !isReusable_)
    return fail(ErrorCode::kBadState, "The {} {} is set already.", side, index);
  return slot;
}

Result<Execution::Slot> Execution::prepareSlot(const graph::Operand& operand,
                                               const ANeuralNetworksOperandType* type, bool isInput,
                                               bool isOmitted) const {
  Slot slot;
  slot.isSet = true;
  HEARTH_ASSIGN(slot.dimensions, specify(operand, type));
  slot.isSizeKnown = isKnown(operand, slot.dimensions);
  if (isInput && !isOmitted && !slot.isSizeKnown)
    return fail(ErrorCode::kBadData, "The dimensions {} of the input {} are not complete.",
                graph::describeDimensions(slot.dimensions), graph::describe(operand));
  // Without dimensions in the argument, drivers use the model's own.
  if (slot.dimensions != operand.dimensions) slot.argument.dimensions = slot.dimensions;
  return slot;
}

// The number of the buffer's bytes that the computation uses.
Result<uint64_t> Execution::fitLength(const graph::Operand& operand, const Slot& slot, bool isInput,
                                      uint64_t length) const {
  if (!slot.isSizeKnown) return length;
  HEARTH_ASSIGN(const uint64_t needed, bytesOf(operand, slot.dimensions));
  if (length == needed || (isPadded_ && length > needed)) return needed;
  return fail(ErrorCode::kBadData, "The {} gets {} bytes; {} needs {}{}.",
              isInput ? "input" : "output", length, graph::describe(operand), needed,
              isPadded_ ? " at least" : "");
}

void Execution::store(Slot* slot, Slot value) {
  *slot = std::move(value);
  hasArguments_ = true;
  hasMemories_ |= slot->memory != nullptr;
  hasChanged_ = true;
}

Status Execution::setPointer(bool isInput, int32_t index, const ANeuralNetworksOperandType* type,
                             void* buffer, size_t length) {
  const std::lock_guard lock(mutex_);
  HEARTH_ASSIGN(Slot* const slot,
                slotToSet(isInput ? &inputs_ : &outputs_, index, isInput ? "input" : "output"));
  if (buffer == nullptr && length != 0)
    return fail(ErrorCode::kUnexpectedNull, "The argument has {} bytes at a null pointer.", length);
  const auto position = static_cast<size_t>(index);
  const graph::Operand& operand =
      isInput ? compiled_->input(position) : compiled_->output(position);
  HEARTH_ASSIGN(Slot value, prepareSlot(operand, type, isInput, buffer == nullptr));
  if (buffer != nullptr) {
    value.argument.kind = hal::Argument::Kind::kPointer;
    value.argument.pointer = buffer;
    HEARTH_ASSIGN(value.argument.length, fitLength(operand, value, isInput, length));
  }
  store(slot, std::move(value));
  return {};
}

Status Execution::setMemory(bool isInput, int32_t index, const ANeuralNetworksOperandType* type,
                            std::shared_ptr<Memory> memory, const MemoryRange& range) {
  const std::lock_guard lock(mutex_);
  HEARTH_ASSIGN(Slot* const slot,
                slotToSet(isInput ? &inputs_ : &outputs_, index, isInput ? "input" : "output"));
  const auto position = static_cast<size_t>(index);
  const graph::Operand& operand =
      isInput ? compiled_->input(position) : compiled_->output(position);
  // A device memory may know the dimensions that model and type leave open.
  HEARTH_ASSIGN(Slot value, prepareSlot(operand, type, isInput, memory->isWhole()));
  HEARTH_ASSIGN(value.dimensions,
                memory->checkArgument({compiled_, isInput, static_cast<uint32_t>(index)},
                                      value.dimensions, range));
  value.isSizeKnown = isKnown(operand, value.dimensions);
  value.range = range;
  if (!memory->isWhole()) {
    HEARTH_ASSIGN(value.range.length, fitLength(operand, value, isInput, range.length));
  }
  value.memory = std::move(memory);
  store(slot, std::move(value));
  return {};
}

Status Execution::setInput(int32_t index, const ANeuralNetworksOperandType* type,
                           const void* buffer, size_t length) {
  // Drivers only read inputs.
  return setPointer(true, index, type, const_cast<void*>(buffer), length);
}

Status Execution::setOutput(int32_t index, const ANeuralNetworksOperandType* type, void* buffer,
                            size_t length) {
  return setPointer(false, index, type, buffer, length);
}

Status Execution::setInputFromMemory(int32_t index, const ANeuralNetworksOperandType* type,
                                     std::shared_ptr<Memory> memory, const MemoryRange& range) {
  return setMemory(true, index, type, std::move(memory), range);
}

Status Execution::setOutputFromMemory(int32_t index, const ANeuralNetworksOperandType* type,
                                      std::shared_ptr<Memory> memory, const MemoryRange& range) {
  return setMemory(false, index, type, std::move(memory), range);
}

Status Execution::addAttribute(const char* extension, uint16_t code) const {
  const std::lock_guard lock(mutex_);
  HEARTH_TRY(requireChangeable());
  return fail(ErrorCode::kBadData, "No device knows the attribute {} of the extension \"{}\".",
              code, extension);
}

Status Execution::setReusable(bool isReusable) {
  const std::lock_guard lock(mutex_);
  if (isDone_ || runs_->isInFlight())
    return fail(ErrorCode::kBadState, "The execution has been started already.");
  isReusable_ = isReusable;
  return {};
}

Status Execution::enablePadding(bool isEnabled) {
  const std::lock_guard lock(mutex_);
  HEARTH_TRY(requireChangeable());
  if (hasArguments_)
    return fail(ErrorCode::kBadState, "Padding is chosen before the first argument is set.");
  isPadded_ = isEnabled;
  return {};
}

Status Execution::setMeasureTiming(bool isMeasured) {
  const std::lock_guard lock(mutex_);
  if (!compiled_->hasSingleExplicitDevice())
    return fail(ErrorCode::kBadData,
                "Timing is measured for a compilation with exactly one listed device.");
  HEARTH_TRY(requireChangeable());
  isMeasured_ = isMeasured;
  return {};
}

Status Execution::setTimeout(uint64_t duration) {
  const std::lock_guard lock(mutex_);
  if (!compiled_->hasSingleExplicitDevice())
    return fail(ErrorCode::kBadData,
                "A time-out needs a compilation with exactly one listed device.");
  HEARTH_TRY(requireChangeable());
  timeout_ = duration;
  return {};
}

Status Execution::setLoopTimeout(uint64_t duration) {
  const std::lock_guard lock(mutex_);
  HEARTH_TRY(requireChangeable());
  if (duration > kMaxLoopTimeout)
    base::logWarn("The loop time-out of {} ns is above the maximum, {} ns, which is used.",
                  duration, kMaxLoopTimeout);
  loopTimeout_ = std::min(duration, kMaxLoopTimeout);
  hasChanged_ = true;
  return {};
}

}  // namespace hearth::nnapi
