// SPDX-License-Identifier: Apache-2.0
// The execution and event functions of hearth.h.
#include "api/handles.h"

using hearth::ErrorCode;
using hearth::fail;
using hearth::Status;
using hearth::api::deadlineAfter;
using hearth::api::fillSized;
using hearth::api::guarded;
using hearth::api::nullArgument;

namespace {

hearth::hal::Argument pointerArgument(const void* data, size_t bytes) {
  hearth::hal::Argument argument;
  argument.kind = hearth::hal::Argument::Kind::kPointer;
  argument.pointer = const_cast<void*>(data);
  argument.length = bytes;
  return argument;
}

}  // namespace

extern "C" {

hearth_status hearth_execution_create(const hearth_compilation* compilation,
                                      hearth_execution** execution, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (compilation == nullptr) return nullArgument("compilation");
    if (execution == nullptr) return nullArgument("execution");
    HEARTH_ASSIGN(auto made,
                  hearth::runtime::Execution::create(compilation->signature->compilation));
    *execution = new hearth_execution{compilation->signature, std::move(made)};
    return {};
  });
}

void hearth_execution_free(hearth_execution* execution) {
  if (execution != nullptr) execution->execution->waitUntilIdle();
  delete execution;
}

hearth_status hearth_execution_set_input(hearth_execution* execution, size_t index,
                                         const void* data, size_t bytes, const uint32_t* dimensions,
                                         size_t rank, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (execution == nullptr) return nullArgument("execution");
    if (dimensions == nullptr && rank != 0) return nullArgument("dimensions");
    hearth::hal::Argument argument = pointerArgument(data, bytes);
    if (dimensions != nullptr) {
      argument.dimensions.assign(dimensions, dimensions + rank);
    } else if (index < execution->signature->inputs.size() &&
               execution->signature->inputs[index].byteSize == 0) {
      argument.dimensions = execution->signature->inputs[index].defaultDimensions;
    }
    return execution->execution->setInput(index, std::move(argument));
  });
}

hearth_status hearth_execution_set_output(hearth_execution* execution, size_t index, void* data,
                                          size_t bytes, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (execution == nullptr) return nullArgument("execution");
    return execution->execution->setOutput(index, pointerArgument(data, bytes));
  });
}

hearth_status hearth_execution_run(hearth_execution* execution, uint64_t timeout_ns,
                                   hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (execution == nullptr) return nullArgument("execution");
    return execution->execution->compute(deadlineAfter(timeout_ns));
  });
}

hearth_status hearth_execution_start(hearth_execution* execution, uint64_t timeout_ns,
                                     hearth_event** event, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (execution == nullptr) return nullArgument("execution");
    if (event == nullptr) return nullArgument("event");
    auto made = std::make_unique<hearth_event>();
    HEARTH_ASSIGN(made->event, execution->execution->start(deadlineAfter(timeout_ns),
                                                           hearth::runtime::Scheduler::shared()));
    *event = made.release();
    return {};
  });
}

hearth_status hearth_execution_output_shape(const hearth_execution* execution, size_t index,
                                            uint32_t* dimensions, size_t* rank,
                                            hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (execution == nullptr) return nullArgument("execution");
    if (rank == nullptr) return nullArgument("rank");
    HEARTH_ASSIGN(const hearth::graph::Dimensions shape, execution->execution->outputShape(index));
    const size_t room = *rank;
    *rank = shape.size();
    if (shape.size() > room)
      return fail(ErrorCode::kBadData, "Output {} has rank {}; there is room for {} dimensions.",
                  index, shape.size(), room);
    if (dimensions == nullptr && !shape.empty()) return nullArgument("dimensions");
    std::copy(shape.begin(), shape.end(), dimensions);
    return {};
  });
}

hearth_status hearth_execution_reset_state(hearth_execution* execution, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (execution == nullptr) return nullArgument("execution");
    return execution->execution->resetState();
  });
}

hearth_status hearth_execution_statistics(const hearth_execution* execution,
                                          hearth_statistics* statistics, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (execution == nullptr) return nullArgument("execution");
    const hearth::runtime::Statistics source = execution->execution->statistics();
    hearth_statistics made{};
    made.runs = source.runs;
    made.last_ns = source.lastNs;
    made.on_device_ns = source.timing.onDevice;
    made.in_driver_ns = source.timing.inDriver;
    made.copied_bytes = source.copiedBytes;
    return fillSized(statistics, made);
  });
}

hearth_status hearth_event_wait(const hearth_event* event, uint64_t timeout_ns,
                                hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (event == nullptr) return nullArgument("event");
    const std::optional<Status> status = event->event->wait(deadlineAfter(timeout_ns));
    if (!status)
      return fail(ErrorCode::kMissedDeadlineTransient, "The run has not ended within {} ns.",
                  timeout_ns);
    return *status;
  });
}

int hearth_event_is_done(const hearth_event* event) {
  return event != nullptr && event->event->isDone() ? 1 : 0;
}

void hearth_event_free(hearth_event* event) {
  delete event;
}

}  // extern "C"
