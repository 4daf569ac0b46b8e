// SPDX-License-Identifier: Apache-2.0
#include "drivers/support_library/library_execution.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

namespace hearth::drivers::support_library {
namespace {

// More than any operation has: a library writes as many dimensions as it says that there are.
constexpr uint32_t kMaxRank = 64;

graph::Operand withDimensions(const graph::Operand& operand, graph::Dimensions dimensions) {
  graph::Operand sized;
  sized.type = operand.type;
  sized.isRankZeroTensor = operand.isRankZeroTensor;
  sized.driverElementSize = operand.driverElementSize;
  sized.dimensions = std::move(dimensions);
  return sized;
}

// Whether a shape that a library answers is one of the operand's.
bool fits(const graph::Dimensions& known, const graph::Dimensions& answered) {
  if (known.empty()) return true;
  if (known.size() != answered.size()) return false;
  for (size_t i = 0; i < known.size(); ++i)
    if (known[i] != 0 && known[i] != answered[i]) return false;
  return true;
}

}  // namespace

Result<std::unique_ptr<LibraryExecution>> LibraryExecution::make(
    std::shared_ptr<const LibraryPreparedModel> prepared, const hal::Request& request,
    hal::BoundRequest bound, DeviceArguments memories) {
  const NnApiSLDriverImplFL5& functions = prepared->model().library().functions();
  HEARTH_ASSIGN(auto handle,
                makeObject<ANeuralNetworksExecution>(
                    "ANeuralNetworksExecution_create", functions.ANeuralNetworksExecution_create,
                    functions.ANeuralNetworksExecution_free, prepared->compilation()));
  std::unique_ptr<LibraryExecution> made(new LibraryExecution(
      std::move(prepared), std::move(bound), std::move(memories), std::move(handle)));
  HEARTH_TRY(made->setArguments(request));
  return made;
}

LibraryExecution::~LibraryExecution() {
  thread_.stop();
  // The library writes to the arguments until then.
  if (event_) static_cast<void>(event_->wait());
}

Status LibraryExecution::setArguments(const hal::Request& request) {
  ANeuralNetworksExecution* const execution = execution_.get();
  HEARTH_TRY(asStatus(functions().ANeuralNetworksExecution_setReusable(execution, true),
                      "ANeuralNetworksExecution_setReusable"));
  HEARTH_TRY(
      asStatus(functions().ANeuralNetworksExecution_setLoopTimeout(execution, request.loopTimeout),
               "ANeuralNetworksExecution_setLoopTimeout"));
  isMeasured_ = functions().ANeuralNetworksExecution_setMeasureTiming(execution, true) ==
                ANEURALNETWORKS_NO_ERROR;
  for (size_t i = 0; i < request.inputs.size(); ++i)
    HEARTH_TRY_CONTEXT(setArgument(true, i, request.inputs[i]), "while setting input {}", i);
  for (size_t i = 0; i < request.outputs.size(); ++i)
    HEARTH_TRY_CONTEXT(setArgument(false, i, request.outputs[i]), "while setting output {}", i);
  std::vector<hal::OutputShape> shapes;
  for (size_t i = 0; i < main().outputs.size(); ++i) {
    const graph::Operand& operand = main().operands[main().outputs[i]];
    if (!graph::isFullySpecified(operand)) return {};
    shapes.push_back({operand.dimensions, true});
  }
  knownShapes_ = hal::OutputShapes(std::move(shapes));
  return {};
}

Status LibraryExecution::setArgument(bool isInput, size_t index, const hal::Argument& argument) {
  const ops::RunArgument& resolved = isInput ? bound_.inputs[index] : bound_.outputs[index];
  const uint32_t position = isInput ? main().inputs[index] : main().outputs[index];
  const graph::Operand& operand = main().operands[position];
  const ANeuralNetworksOperandType given = prepared_->model().typeOf(operand, resolved.dimensions);
  const ANeuralNetworksOperandType* const type =
      resolved.dimensions == operand.dimensions ? nullptr : &given;
  ANeuralNetworksExecution* const execution = execution_.get();
  const auto number = static_cast<int32_t>(index);
  void* data = resolved.isPresent ? resolved.data : nullptr;
  const uint64_t length = resolved.isPresent ? resolved.length : 0;
  const auto inMemory = [&](const ANeuralNetworksMemory* memory, uint64_t offset,
                            uint64_t size) -> Status {
    if (isInput)
      return asStatus(functions().ANeuralNetworksExecution_setInputFromMemory(
                          execution, number, type, memory, offset, size),
                      "ANeuralNetworksExecution_setInputFromMemory");
    return asStatus(functions().ANeuralNetworksExecution_setOutputFromMemory(
                        execution, number, type, memory, offset, size),
                    "ANeuralNetworksExecution_setOutputFromMemory");
  };
  const auto& memories = isInput ? deviceArguments_.inputs : deviceArguments_.outputs;
  // NNAPI has the whole memory as a range without length.
  if (memories[index] != nullptr) return inMemory(memories[index]->handle.get(), 0, 0);
  if (!isInput && overlapsAnInput(resolved)) {
    copies_.push_back(
        {std::vector<uint64_t>((length + sizeof(uint64_t) - 1) / sizeof(uint64_t)), &resolved});
    data = copies_.back().memory.data();
  } else if (argument.kind == hal::Argument::Kind::kPool && length != 0) {
    HEARTH_ASSIGN(const PoolMemory* const memory, memoryOf(argument.pool));
    if (memory != nullptr)
      return inMemory(memory->memory.get(), memory->shift + argument.offset, length);
  }
  if (isInput)
    return asStatus(
        functions().ANeuralNetworksExecution_setInput(execution, number, type, data, length),
        "ANeuralNetworksExecution_setInput");
  return asStatus(
      functions().ANeuralNetworksExecution_setOutput(execution, number, type, data, length),
      "ANeuralNetworksExecution_setOutput");
}

// Null for memory without a descriptor.
Result<const PoolMemory*> LibraryExecution::memoryOf(const memory::PoolRef& pool) {
  if (pool->fd() < 0) return nullptr;
  auto it = memories_.find(pool.get());
  if (it == memories_.end()) {
    HEARTH_ASSIGN(PoolMemory memory, memoryOfPool(prepared_->model().library(), *pool));
    it = memories_.emplace(pool.get(), std::move(memory)).first;
  }
  return &it->second;
}

bool LibraryExecution::omitsAnInput() const {
  for (size_t i = 0; i < bound_.inputs.size(); ++i)
    if (!bound_.inputs[i].isPresent && deviceArguments_.inputs[i] == nullptr) return true;
  return false;
}

bool LibraryExecution::overlapsAnInput(const ops::RunArgument& output) const {
  const auto begin = reinterpret_cast<uintptr_t>(output.data);
  return output.isPresent && std::ranges::any_of(bound_.inputs, [&](const auto& input) {
           const auto other = reinterpret_cast<uintptr_t>(input.data);
           return input.isPresent && begin < other + input.length && other < begin + output.length;
         });
}

Status LibraryExecution::setTimeout(const base::Deadline& deadline) {
  if (deadline.isNever() && !hasTimeout_) return {};
  uint64_t nanoseconds = 0;  // no limit
  if (!deadline.isNever()) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          deadline.when() - base::Deadline::Clock::now())
                          .count();
    nanoseconds = static_cast<uint64_t>(std::max<int64_t>(left, 1));
  }
  hasTimeout_ = nanoseconds != 0;
  return asStatus(functions().ANeuralNetworksExecution_setTimeout(execution_.get(), nanoseconds),
                  "ANeuralNetworksExecution_setTimeout");
}

hal::ExecutionResult LibraryExecution::compute(const base::Deadline& deadline) {
  hal::ExecutionResult result;
  if (deadline.hasPassed()) {
    result.status = fail(ErrorCode::kMissedDeadlineTransient, "The deadline has passed.");
    return result;
  }
  result.status = setTimeout(deadline);
  if (!result.status) return result;
  return ended(asStatus(functions().ANeuralNetworksExecution_compute(execution_.get()),
                        "ANeuralNetworksExecution_compute"));
}

Result<base::Descriptor> LibraryExecution::startFenced(std::vector<base::Descriptor> fences,
                                                       const base::Deadline& deadline) {
  if (event_ || isOnThread_)
    return fail(ErrorCode::kBadState, "A fenced execution has been started and not finished.");
  if (!hasEvents(functions()))
    return fail(ErrorCode::kUnsupported, "The support library has no fenced executions.");
  if (deadline.hasPassed())
    return fail(ErrorCode::kMissedDeadlineTransient, "The deadline has passed.");
  hal::FencedThread::Compute compute = [this](const base::Deadline& limit) {
    return this->compute(limit);
  };
  if (std::ranges::all_of(fences, isSyncFile)) {
    HEARTH_TRY(setTimeout(deadline));
    HEARTH_ASSIGN(event_, LibraryEvent::start(functions(), execution_.get(), fences));
    // What is copied afterwards has to be there when the fence is readable.
    if (copies_.empty())
      if (base::Descriptor fence = event_->fence(); fence.valid()) return fence;
    fences.clear();
    compute = [this](const base::Deadline&) {
      return ended(event_->wait());
    };
  }
  auto fence = thread_.start(std::move(fences), deadline, std::move(compute));
  isOnThread_ = fence.has_value();
  if (!fence && event_) {
    static_cast<void>(event_->wait());
    event_.reset();
  }
  return fence;
}

hal::ExecutionResult LibraryExecution::finishFenced() {
  hal::ExecutionResult result;
  if (isOnThread_)
    result = thread_.finish();
  else if (event_)
    result = ended(event_->wait());
  else
    result.status = fail(ErrorCode::kBadState, "No fenced execution has been started.");
  isOnThread_ = false;
  event_.reset();
  return result;
}

hal::ExecutionResult LibraryExecution::ended(Status status) {
  hal::ExecutionResult result;
  result.status = std::move(status);
  // NNAPI has no code for an input that a computation misses.
  if (!result.status && result.status.error().code() == ErrorCode::kOpFailed && omitsAnInput())
    result.status = fail(ErrorCode::kBadData, "{} The request omits an input.",
                         result.status.error().toString());
  const bool hasShapes =
      result.status || result.status.error().code() == ErrorCode::kOutputInsufficientSize;
  if (hasShapes) {
    auto shapes = outputShapes(result.status);
    if (shapes)
      result.outputShapes = *std::move(shapes);
    else
      result.status = std::unexpected(std::move(shapes.error()));
  }
  if (Status whole = hal::checkPoolsWhole(prepared_->model().source()); !whole)
    result.status = std::move(whole);
  if (Status whole = hal::checkMemoriesWhole(bound_.pools); !whole)
    result.status = std::move(whole);
  if (!result.status) return result;
  copyOutputs(result.outputShapes, &result.copiedBytes);
  result.timing.onDevice = duration(ANEURALNETWORKS_DURATION_ON_HARDWARE);
  result.timing.inDriver = duration(ANEURALNETWORKS_DURATION_IN_DRIVER);
  return result;
}

Result<hal::OutputShape> LibraryExecution::outputShape(size_t index) const {
  const auto number = static_cast<int32_t>(index);
  const graph::Operand& operand = main().operands[main().outputs[index]];
  hal::OutputShape shape;
  uint32_t rank = 0;
  int code =
      functions().ANeuralNetworksExecution_getOutputOperandRank(execution_.get(), number, &rank);
  shape.isSufficient = code != ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE;
  if (shape.isSufficient)
    HEARTH_TRY(asStatus(code, "ANeuralNetworksExecution_getOutputOperandRank"));
  if (rank > kMaxRank)
    return fail(ErrorCode::kOpFailed, "The support library gives output {} the rank {}.", index,
                rank);
  std::array<uint32_t, kMaxRank> dimensions{};
  // Scalars have no dimensions to ask for.
  if (rank != 0) {
    code = functions().ANeuralNetworksExecution_getOutputOperandDimensions(execution_.get(), number,
                                                                           dimensions.data());
    if (code != ANEURALNETWORKS_OUTPUT_INSUFFICIENT_SIZE)
      HEARTH_TRY(asStatus(code, "ANeuralNetworksExecution_getOutputOperandDimensions"));
  }
  shape.dimensions.assign(dimensions.begin(), dimensions.begin() + rank);
  const ops::RunArgument& bound = bound_.outputs[index];
  if (!fits(bound.dimensions, shape.dimensions))
    return fail(ErrorCode::kOpFailed, "The support library gives output {}, {}, the shape {}.",
                index, graph::describe(operand), graph::describeDimensions(shape.dimensions));
  if (shape.isSufficient && bound.isPresent) {
    const graph::Operand sized = withDimensions(operand, shape.dimensions);
    const auto bytes = graph::byteSize(sized);
    if (graph::isFullySpecified(sized) && (!bytes || *bytes > bound.length))
      return fail(ErrorCode::kOpFailed,
                  "The support library gives output {} the shape {}; its memory has {} bytes.",
                  index, graph::describeDimensions(shape.dimensions), bound.length);
  }
  return shape;
}

Result<hal::OutputShapes> LibraryExecution::outputShapes(const Status& computed) {
  if (computed && !knownShapes_.empty()) return knownShapes_;
  std::vector<hal::OutputShape> shapes;
  for (size_t i = 0; i < main().outputs.size(); ++i) {
    HEARTH_ASSIGN(hal::OutputShape shape, outputShape(i));
    shapes.push_back(std::move(shape));
  }
  return hal::OutputShapes(std::move(shapes));
}

void LibraryExecution::copyOutputs(const hal::OutputShapes& shapes, uint64_t* copiedBytes) const {
  for (const Copy& copy : copies_) {
    const auto index = static_cast<size_t>(copy.output - bound_.outputs.data());
    const graph::Operand& operand = main().operands[main().outputs[index]];
    const auto bytes = graph::byteSize(withDimensions(operand, shapes[index].dimensions));
    const uint64_t size = std::min(bytes.value_or(copy.output->length), copy.output->length);
    std::memcpy(copy.output->data, copy.memory.data(), size);
    *copiedBytes += size;
  }
}

uint64_t LibraryExecution::duration(int32_t code) const {
  uint64_t nanoseconds = UINT64_MAX;
  if (!isMeasured_ || functions().ANeuralNetworksExecution_getDuration(
                          execution_.get(), code, &nanoseconds) != ANEURALNETWORKS_NO_ERROR)
    return UINT64_MAX;
  return nanoseconds;
}

}  // namespace hearth::drivers::support_library
