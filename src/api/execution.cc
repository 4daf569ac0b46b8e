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

hearth::hal::Argument pointerArgument(const hearth_execution& execution, const void* data,
                                      size_t bytes) {
  hearth::hal::Argument argument;
  argument.kind = hearth::hal::Argument::Kind::kPointer;
  argument.pointer = const_cast<void*>(data);
  argument.length = bytes;
  argument.hasReadableTail = execution.isPaddingPromised;
  return argument;
}

Status setInput(hearth_execution* execution, size_t index, const void* data, size_t bytes,
                const uint32_t* dimensions, size_t rank) {
  if (dimensions == nullptr && rank != 0) return nullArgument("dimensions");
  hearth::hal::Argument argument = pointerArgument(*execution, data, bytes);
  const auto& inputs = execution->signature->inputs;
  if (dimensions != nullptr) {
    argument.dimensions.assign(dimensions, dimensions + rank);
  } else if (index < inputs.size() && inputs[index].byteSize == 0) {
    argument.dimensions = inputs[index].defaultDimensions;
  }
  return execution->execution->setInput(index, std::move(argument));
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
    auto handle = std::make_unique<hearth_execution>(compilation->signature, std::move(made));
    handle->inputStrings.resize(compilation->signature->inputs.size());
    *execution = handle.release();
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
    const auto& inputs = execution->signature->inputs;
    if (index < inputs.size() && inputs[index].type == HEARTH_TYPE_STRING)
      return fail(ErrorCode::kBadData,
                  "Input {} \"{}\" is of strings, which hearth_execution_set_input_strings sets.",
                  index, inputs[index].name);
    return setInput(execution, index, data, bytes, dimensions, rank);
  });
}

hearth_status hearth_execution_set_input_strings(hearth_execution* execution, size_t index,
                                                 const char* const* strings, const size_t* lengths,
                                                 size_t count, const uint32_t* dimensions,
                                                 size_t rank, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (execution == nullptr) return nullArgument("execution");
    if (strings == nullptr && count != 0) return nullArgument("strings");
    if (index < execution->inputStrings.size() &&
        execution->signature->inputs[index].type != HEARTH_TYPE_STRING)
      return fail(ErrorCode::kBadData, "Input {} \"{}\" is not of strings.", index,
                  execution->signature->inputs[index].name);
    auto made = std::make_unique<hearth::api::InputStrings>();
    made->elements.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      if (strings[i] == nullptr) return nullArgument("strings[i]");
      HEARTH_ASSIGN(const hearth::memory::StringHandle element,
                    made->scope.put(lengths != nullptr ? std::string_view(strings[i], lengths[i])
                                                       : std::string_view(strings[i])));
      made->elements.push_back(element);
    }
    HEARTH_TRY(setInput(execution, index, made->elements.data(),
                        made->elements.size() * sizeof made->elements[0], dimensions, rank));
    execution->inputStrings[index] = std::move(made);
    return {};
  });
}

hearth_status hearth_execution_set_output(hearth_execution* execution, size_t index, void* data,
                                          size_t bytes, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (execution == nullptr) return nullArgument("execution");
    return execution->execution->setOutput(index, pointerArgument(*execution, data, bytes));
  });
}

hearth_status hearth_execution_promise_padding(hearth_execution* execution, int isPromised,
                                               hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (execution == nullptr) return nullArgument("execution");
    execution->isPaddingPromised = isPromised != 0;
    return {};
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

hearth_status hearth_execution_string(const hearth_execution* execution, uint64_t element,
                                      const char** text, size_t* bytes, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (execution == nullptr) return nullArgument("execution");
    if (text == nullptr) return nullArgument("text");
    if (bytes == nullptr) return nullArgument("bytes");
    HEARTH_ASSIGN(const std::string_view found, execution->execution->string(element));
    *text = found.data();
    *bytes = found.size();
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
