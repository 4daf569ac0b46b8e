// SPDX-License-Identifier: Apache-2.0
// ANeuralNetworksExecution_* and ANeuralNetworksEvent_* of the C API.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "android/NeuralNetworksExtensions.h"
#include "frontends/nnapi/entry_points/call.h"
#include "frontends/nnapi/objects/execution.h"
#include "runtime/fence_watcher.h"

using namespace hearth;
using namespace hearth::nnapi;

namespace {

// The code for a shape that is returned although its buffer was too small.
Status resultOf(const Execution::OutputShape& shape) {
  if (shape.isSufficient) return {};
  return fail(ErrorCode::kOutputInsufficientSize, "An output buffer was too small.");
}

// The caller's event. If there is no memory for it, waits for the computation, since the caller
// could not.
Result<ANeuralNetworksEvent*> eventOf(std::shared_ptr<runtime::Event> started, bool hasFence) {
  auto* const event = new (std::nothrow) ANeuralNetworksEvent{started, hasFence};
  if (event != nullptr) return event;
  started->wait(base::Deadline());
  return fail(ErrorCode::kOutOfMemory, "There is no memory for an event.");
}

// Runs `action` on the execution as the body of an entry point.
template <typename Action>
int onExecution(const char* function, ANeuralNetworksExecution* execution, Action action) {
  return call(function, [&]() -> Status {
    HEARTH_NOT_NULL(execution);
    return action(*execution->execution);
  });
}

}  // namespace

int ANeuralNetworksExecution_create(ANeuralNetworksCompilation* compilation,
                                    ANeuralNetworksExecution** execution) {
  return callToMake(__func__, "execution", execution, [&]() -> Result<ANeuralNetworksExecution*> {
    HEARTH_NOT_NULL(compilation);
    HEARTH_ASSIGN(auto compiled, compilation->compiled());
    HEARTH_ASSIGN(auto made, Execution::create(std::move(compiled)));
    return new ANeuralNetworksExecution{std::move(made)};
  });
}

void ANeuralNetworksExecution_free(ANeuralNetworksExecution* execution) {
  delete execution;
}

int ANeuralNetworksExecution_setInput(ANeuralNetworksExecution* execution, int32_t index,
                                      const ANeuralNetworksOperandType* type, const void* buffer,
                                      size_t length) {
  return onExecution(__func__, execution,
                     [&](Execution& e) { return e.setInput(index, type, buffer, length); });
}

int ANeuralNetworksExecution_setInputFromMemory(ANeuralNetworksExecution* execution, int32_t index,
                                                const ANeuralNetworksOperandType* type,
                                                const ANeuralNetworksMemory* memory, size_t offset,
                                                size_t length) {
  return onExecution(__func__, execution, [&](Execution& e) -> Status {
    HEARTH_NOT_NULL(memory);
    return e.setInputFromMemory(index, type, memory->memory, {offset, length});
  });
}

int ANeuralNetworksExecution_setOutput(ANeuralNetworksExecution* execution, int32_t index,
                                       const ANeuralNetworksOperandType* type, void* buffer,
                                       size_t length) {
  return onExecution(__func__, execution,
                     [&](Execution& e) { return e.setOutput(index, type, buffer, length); });
}

int ANeuralNetworksExecution_setOutputFromMemory(ANeuralNetworksExecution* execution, int32_t index,
                                                 const ANeuralNetworksOperandType* type,
                                                 const ANeuralNetworksMemory* memory, size_t offset,
                                                 size_t length) {
  return onExecution(__func__, execution, [&](Execution& e) -> Status {
    HEARTH_NOT_NULL(memory);
    return e.setOutputFromMemory(index, type, memory->memory, {offset, length});
  });
}

int ANeuralNetworksExecution_enableInputAndOutputPadding(ANeuralNetworksExecution* execution,
                                                         bool enable) {
  return onExecution(__func__, execution, [&](Execution& e) { return e.enablePadding(enable); });
}

int ANeuralNetworksExecution_setReusable(ANeuralNetworksExecution* execution, bool reusable) {
  return onExecution(__func__, execution, [&](Execution& e) { return e.setReusable(reusable); });
}

int ANeuralNetworksExecution_setTimeout(ANeuralNetworksExecution* execution, uint64_t duration) {
  return onExecution(__func__, execution, [&](Execution& e) { return e.setTimeout(duration); });
}

int ANeuralNetworksExecution_setLoopTimeout(ANeuralNetworksExecution* execution,
                                            uint64_t duration) {
  return onExecution(__func__, execution, [&](Execution& e) { return e.setLoopTimeout(duration); });
}

int ANeuralNetworksExecution_setMeasureTiming(ANeuralNetworksExecution* execution, bool measure) {
  return onExecution(__func__, execution,
                     [&](Execution& e) { return e.setMeasureTiming(measure); });
}

int ANeuralNetworksExecution_addExtensionAttribute(ANeuralNetworksExecution* execution,
                                                   const char* extensionName,
                                                   uint16_t attributeCodeWithinExtension,
                                                   const void* data, size_t length) {
  return onExecution(__func__, execution, [&](Execution& e) -> Status {
    HEARTH_NOT_NULL(extensionName);
    if (length != 0) HEARTH_NOT_NULL(data);
    return e.addAttribute(extensionName, attributeCodeWithinExtension);
  });
}

int ANeuralNetworksExecution_compute(ANeuralNetworksExecution* execution) {
  return onExecution(__func__, execution, [&](Execution& e) { return e.compute(); });
}

int ANeuralNetworksExecution_burstCompute(ANeuralNetworksExecution* execution,
                                          ANeuralNetworksBurst* burst) {
  return onExecution(__func__, execution, [&](Execution& e) -> Status {
    HEARTH_NOT_NULL(burst);
    return e.burstCompute(*burst);
  });
}

int ANeuralNetworksExecution_startCompute(ANeuralNetworksExecution* execution,
                                          ANeuralNetworksEvent** event) {
  return callToMake(__func__, "event", event, [&]() -> Result<ANeuralNetworksEvent*> {
    HEARTH_NOT_NULL(execution);
    HEARTH_ASSIGN(auto started, execution->execution->start());
    return eventOf(std::move(started), false);
  });
}

int ANeuralNetworksExecution_startComputeWithDependencies(
    ANeuralNetworksExecution* execution, const ANeuralNetworksEvent* const* dependencies,
    uint32_t num_dependencies, uint64_t duration, ANeuralNetworksEvent** event) {
  return callToMake(__func__, "event", event, [&]() -> Result<ANeuralNetworksEvent*> {
    HEARTH_NOT_NULL(execution);
    if (num_dependencies != 0) HEARTH_NOT_NULL(dependencies);
    std::vector<std::shared_ptr<runtime::Event>> events;
    for (uint32_t i = 0; i < num_dependencies; ++i) {
      if (dependencies[i] == nullptr)
        return fail(ErrorCode::kUnexpectedNull, "Dependency {} is null.", i);
      events.push_back(dependencies[i]->event);
    }
    HEARTH_ASSIGN(auto started, execution->execution->startAfter(events, duration));
    return eventOf(std::move(started), true);
  });
}

int ANeuralNetworksExecution_getOutputOperandRank(ANeuralNetworksExecution* execution,
                                                  int32_t index, uint32_t* rank) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(execution);
    HEARTH_NOT_NULL(rank);
    HEARTH_ASSIGN(const Execution::OutputShape shape, execution->execution->outputShape(index));
    *rank = static_cast<uint32_t>(shape.dimensions.size());
    return resultOf(shape);
  });
}

int ANeuralNetworksExecution_getOutputOperandDimensions(ANeuralNetworksExecution* execution,
                                                        int32_t index, uint32_t* dimensions) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(execution);
    HEARTH_NOT_NULL(dimensions);
    HEARTH_ASSIGN(const Execution::OutputShape shape, execution->execution->outputShape(index));
    if (shape.dimensions.empty())
      return fail(ErrorCode::kBadData, "The output {} is a scalar, it has no dimensions.", index);
    std::copy(shape.dimensions.begin(), shape.dimensions.end(), dimensions);
    return resultOf(shape);
  });
}

int ANeuralNetworksExecution_getDuration(const ANeuralNetworksExecution* execution,
                                         int32_t durationCode, uint64_t* duration) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(duration);
    *duration = UINT64_MAX;
    HEARTH_NOT_NULL(execution);
    HEARTH_ASSIGN(*duration, execution->execution->duration(durationCode));
    return {};
  });
}

int ANeuralNetworksEvent_wait(ANeuralNetworksEvent* event) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(event);
    return *event->event->wait(base::Deadline());
  });
}

void ANeuralNetworksEvent_free(ANeuralNetworksEvent* event) {
  if (event == nullptr) return;
  event->event->wait(base::Deadline());
  delete event;
}

int ANeuralNetworksEvent_createFromSyncFenceFd(int sync_fence_fd, ANeuralNetworksEvent** event) {
  return callToMake(__func__, "event", event, [&]() -> Result<ANeuralNetworksEvent*> {
    // NNAPI does not accept standard input as a fence.
    if (sync_fence_fd <= 0)
      return fail(ErrorCode::kBadData, "The descriptor {} is no fence.", sync_fence_fd);
    base::Descriptor fence(::fcntl(sync_fence_fd, F_DUPFD_CLOEXEC, 0));
    if (!fence.valid())
      return fail(ErrorCode::kBadData, "The descriptor {} cannot be duplicated (errno {}).",
                  sync_fence_fd, errno);
    HEARTH_ASSIGN(auto watched, runtime::watchFence(std::move(fence)));
    return new ANeuralNetworksEvent{std::move(watched), true};
  });
}

int ANeuralNetworksEvent_getSyncFenceFd(const ANeuralNetworksEvent* event, int* sync_fence_fd) {
  return call(__func__, [&]() -> Status {
    HEARTH_NOT_NULL(sync_fence_fd);
    *sync_fence_fd = -1;
    HEARTH_NOT_NULL(event);
    if (!event->hasFence)
      return fail(ErrorCode::kBadData, "An event of startCompute has no fence.");
    HEARTH_ASSIGN(base::Descriptor fence, event->event->fence());
    *sync_fence_fd = fence.release();
    return {};
  });
}
