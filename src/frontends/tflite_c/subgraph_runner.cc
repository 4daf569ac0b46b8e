// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/subgraph_runner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/compilation.h"

namespace hearth::tflite_c {
namespace {

// The first memory of an output whose size is known after a run only.
constexpr uint64_t kFirstDynamicBytes = 4096;

hal::Argument argumentAt(void* data, uint64_t bytes) {
  hal::Argument argument;
  argument.kind = hal::Argument::Kind::kPointer;
  argument.pointer = data;
  argument.length = bytes;
  return argument;
}

std::vector<int32_t> signedDims(const graph::Dimensions& dimensions) {
  return {dimensions.begin(), dimensions.end()};
}

}  // namespace

Result<std::unique_ptr<SubgraphRunner>> SubgraphRunner::create(
    std::shared_ptr<const tflite::ModelFile> file, size_t subgraph) {
  HEARTH_ASSIGN(tflite::FileSubgraph description, file->fileSubgraph(subgraph));
  Result<tflite::ImportedGraph> imported = file->importSubgraph(subgraph);
  if (!imported && imported.error().code() != ErrorCode::kUnsupported)
    return std::unexpected(std::move(imported.error()));
  if (imported && (imported->inputs.size() != description.inputs.size() ||
                   imported->outputs.size() != description.outputs.size()))
    return fail(ErrorCode::kBadData, "The file was written while it was read; read it again.");
  std::unique_ptr<SubgraphRunner> made(
      new SubgraphRunner(std::move(file), subgraph, std::move(description), std::move(imported)));
  HEARTH_TRY(made->findPlaces());
  return made;
}

SubgraphRunner::SubgraphRunner(std::shared_ptr<const tflite::ModelFile> file, size_t subgraph,
                               tflite::FileSubgraph description,
                               Result<tflite::ImportedGraph> imported)
    : file_(std::move(file)),
      index_(subgraph),
      subgraph_(std::move(description)),
      tensors_(std::make_unique<TensorTable>(file_, subgraph, subgraph_.tensorCount)),
      compiler_(file_, subgraph, std::move(imported)),
      inputs_(subgraph_.inputs.size()),
      outputs_(subgraph_.outputs.size()) {}

Status SubgraphRunner::makeGraph(const delegate::DelegateOptions& options) {
  if (graphs_ != nullptr) return {};
  const auto threads = static_cast<int32_t>(std::max(1u, options.threads));
  HEARTH_ASSIGN(graphs_, ProgramGraphs::create(file_, index_, threads));
  graphs_->main().allowStaleOutputs(allowsBufferOutputs_);
  return {};
}

Status SubgraphRunner::useOperators(const ProgramResolver& resolver,
                                    const delegate::DelegateOptions& options) {
  if (!resolver.isNeeded()) return {};
  HEARTH_TRY(makeGraph(options));
  HEARTH_TRY(graphs_->useOperators(resolver));
  return compiler_.setPlans(graphs_->plans());
}

Status SubgraphRunner::applyDelegate(TfLiteDelegate* delegate,
                                     const delegate::DelegateOptions& options) {
  HEARTH_TRY(makeGraph(options));
  HEARTH_TRY(graphs_->apply(delegate, compiler_.hasDynamicShapes(inputShapes()),
                            [&] { return compiler_.setPlans(graphs_->plans()); }));
  HEARTH_TRY(showDelegates());
  // Programs rely on it that a delegate which wants static sizes leaves the tensors allocated.
  if (!std::exchange(isReady_, false) && ProgramGraph::allowsDynamicTensors(*delegate)) return {};
  return allocate(options);
}

bool SubgraphRunner::hasDelegates() const {
  return graphs_ != nullptr && graphs_->hasDelegates();
}

Status SubgraphRunner::removeDelegates(const delegate::DelegateOptions& options) {
  for (const Place& input : inputs_) HEARTH_TRY(ensureReadable(input.tensor));
  graphs_->removeDelegates();
  HEARTH_TRY(showDelegates());
  isReady_ = false;
  HEARTH_TRY(compiler_.setPlans(graphs_->plans()));
  return allocate(options);
}

Status SubgraphRunner::showDelegates() {
  for (size_t i = 0; i < subgraph_.tensorCount; ++i) {
    TfLiteDelegate* const delegate = graphs_->main().delegateOf(i);
    // Tensors that no program has asked for are filled in for their delegates only.
    const bool isPlace = std::ranges::contains(subgraph_.inputs, static_cast<int32_t>(i)) ||
                         std::ranges::contains(subgraph_.outputs, static_cast<int32_t>(i));
    if (delegate == nullptr && !isPlace) continue;
    HEARTH_ASSIGN(TfLiteTensor* const tensor, tensors_->at(i));
    tensor->delegate = delegate;
    if (delegate != nullptr) continue;
    tensor->buffer_handle = -1;
    tensor->data_is_stale = false;
  }
  return {};
}

Status SubgraphRunner::setBufferHandle(TfLiteTensor* tensor, int32_t handle,
                                       TfLiteDelegate* delegate) {
  if (!hasDelegates())
    return fail(ErrorCode::kBadState, "No delegate has taken nodes of this graph.");
  HEARTH_ASSIGN(const size_t index, tensors_->indexOf(tensor));
  HEARTH_TRY(graphs_->main().setHandle(index, handle, delegate));
  tensor->delegate = delegate;
  tensor->buffer_handle = handle;
  hasBuffers_ = true;
  return {};
}

void SubgraphRunner::allowBufferOutputs(bool allow) {
  allowsBufferOutputs_ = allow;
  if (graphs_ != nullptr) graphs_->main().allowStaleOutputs(allow);
}

Status SubgraphRunner::ensureReadable(TfLiteTensor* tensor) {
  if (!tensor->data_is_stale) return {};
  if (graphs_ == nullptr)
    return fail(ErrorCode::kBadState, "No delegate has taken nodes of this graph.");
  return graphs_->main().copyFromHandle(tensor);
}

Status SubgraphRunner::findPlaces() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    HEARTH_ASSIGN(inputs_[i].tensor, tensors_->at(static_cast<size_t>(subgraph_.inputs[i])));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    HEARTH_ASSIGN(outputs_[i].tensor, tensors_->at(static_cast<size_t>(subgraph_.outputs[i])));
  }
  for (const std::vector<Place>* places : {&inputs_, &outputs_})
    for (const Place& place : *places) hasStrings_ |= place.tensor->type == kTfLiteString;
  return {};
}

Status SubgraphRunner::resizeInput(size_t position, std::span<const int32_t> dims, bool isStrict) {
  if (position >= inputs_.size())
    return fail(ErrorCode::kBadData, "There is no input {}; the model has {}.", position,
                inputs_.size());
  TfLiteTensor& tensor = *inputs_[position].tensor;
  if (isStrict) {
    const std::span<const int32_t> before = tflite_abi::dimsOf(tensor);
    const TfLiteIntArray* const open = tensor.dims_signature;
    if (before.size() != dims.size())
      return fail(ErrorCode::kBadData, "The input \"{}\" has {} dimensions; {} are given.",
                  tensor.name, before.size(), dims.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      const bool isOpen =
          open != nullptr && static_cast<size_t>(open->size) == dims.size() && open->data[i] < 0;
      if (dims[i] != before[i] && !isOpen)
        return fail(ErrorCode::kBadData,
                    "Dimension {} of the input \"{}\" is {} in the model; it cannot become {}.", i,
                    tensor.name, before[i], dims[i]);
    }
  }
  if (std::ranges::equal(dims, tflite_abi::dimsOf(tensor))) return {};
  HEARTH_TRY(tflite_abi::setDims(dims, &tensor));
  if (tensor.type == kTfLiteString)
    TfLiteTensorDataFree(&tensor);
  else if (tensor.allocation_type != kTfLiteCustom)
    tensor.data = nullptr;
  isReady_ = false;
  return {};
}

std::vector<graph::Dimensions> SubgraphRunner::inputShapes() const {
  std::vector<graph::Dimensions> shapes;
  for (const Place& input : inputs_) {
    const std::span<const int32_t> dims = tflite_abi::dimsOf(*input.tensor);
    shapes.emplace_back(dims.begin(), dims.end());
  }
  return shapes;
}

Result<void*> SubgraphRunner::memoryFor(Place* place, uint64_t bytes) {
  if (place->custom != nullptr) {
    if (place->customBytes < bytes)
      return fail(
          ErrorCode::kBadData,
          "The memory that the program gives to the tensor \"{}\" has {} bytes; it needs {}.",
          place->tensor->name, place->customBytes, bytes);
    return place->custom;
  }
  if (place->memory.data() == nullptr || place->memory.size() < bytes) {
    HEARTH_ASSIGN(place->memory, tflite_abi::TensorMemory::allocate(bytes));
  }
  return place->memory.data();
}

Status SubgraphRunner::bindInput(size_t position) {
  if (compiled_->execution == nullptr) return {};
  Place& place = inputs_[position];
  hal::Argument argument = argumentAt(place.tensor->data, place.tensor->bytes);
  if (compiled_->hasUnknownInputs) {
    const std::span<const int32_t> dims = tflite_abi::dimsOf(*place.tensor);
    argument.dimensions.assign(dims.begin(), dims.end());
  }
  return compiled_->execution->setInput(position, std::move(argument));
}

Status SubgraphRunner::placeInput(size_t position) {
  Place& place = inputs_[position];
  TfLiteTensor& tensor = *place.tensor;
  // takeStrings() binds them before each run.
  if (tensor.type == kTfLiteString) return {};
  // A subgraph may name one tensor twice.
  const auto same = std::ranges::find(inputs_, &tensor, &Place::tensor);
  if (same == inputs_.begin() + static_cast<ptrdiff_t>(position)) {
    HEARTH_ASSIGN(tensor.data, memoryFor(&place, tensor.bytes));
    if (place.custom == nullptr) tensor.allocation_type = kTfLiteArenaRw;
  }
  return bindInput(position);
}

Status SubgraphRunner::bindOutput(size_t position, uint64_t bytes) {
  if (compiled_->execution == nullptr) return {};
  Place& place = outputs_[position];
  return compiled_->execution->setOutput(position, argumentAt(place.bound, bytes));
}

bool SubgraphRunner::isInput(const TfLiteTensor* tensor) const {
  return std::ranges::find(inputs_, tensor, &Place::tensor) != inputs_.end();
}

Result<uint64_t> SubgraphRunner::boundBytes(const TfLiteTensor& tensor,
                                            std::span<const int32_t> dims) {
  return tflite_abi::tensorBytes(tensor.type == kTfLiteString ? kTfLiteInt64 : tensor.type, dims);
}

Status SubgraphRunner::placeOutput(size_t position, const std::optional<graph::Dimensions>& shape) {
  Place& place = outputs_[position];
  TfLiteTensor& tensor = *place.tensor;
  const auto same = std::ranges::find(outputs_, &tensor, &Place::tensor);
  const bool isRepeated = same != outputs_.begin() + static_cast<ptrdiff_t>(position);
  const bool isOfStrings = tensor.type == kTfLiteString;
  if (isInput(&tensor) && !isOfStrings) {
    // What goes in comes out.
    place.bound = tensor.data;
    return bindOutput(position, tensor.bytes);
  }
  place.isDynamic = !shape.has_value();
  uint64_t bytes = place.custom != nullptr ? place.customBytes
                                           : std::max(kFirstDynamicBytes, place.memory.size());
  if (place.isDynamic) {
    hasDynamicOutputs_ = true;
  } else {
    if (!isRepeated) HEARTH_TRY(tflite_abi::setDims(signedDims(*shape), &tensor));
    HEARTH_ASSIGN(bytes, boundBytes(tensor, tflite_abi::dimsOf(tensor)));
  }
  HEARTH_ASSIGN(place.bound, memoryFor(&place, bytes));
  if (!isRepeated && !isOfStrings) {
    if (place.custom == nullptr)
      tensor.allocation_type = place.isDynamic ? kTfLiteDynamic : kTfLiteArenaRw;
    tensor.data = place.isDynamic ? nullptr : place.bound;
  }
  return bindOutput(position, bytes);
}

Status SubgraphRunner::allocate(const delegate::DelegateOptions& options) {
  if (isReady_) return {};
  std::vector<graph::Dimensions> shapes = inputShapes();
  HEARTH_ASSIGN(compiled_, compiler_.compile(shapes, options));
  if (hasStrings_) options_ = options;
  if (compiled_->execution != nullptr) HEARTH_TRY(compiled_->execution->resetState());
  for (size_t i = 0; i < inputs_.size(); ++i) HEARTH_TRY(placeInput(i));
  hasDynamicOutputs_ = false;
  const std::vector<std::optional<graph::Dimensions>> outputs = compiled_->outputShapes(shapes);
  for (size_t i = 0; i < outputs_.size(); ++i) HEARTH_TRY(placeOutput(i, outputs[i]));
  // Strings are bound before each run.
  if (compiled_->hasUnknownInputs && !hasStrings_) HEARTH_TRY(compiled_->execution->prepareRun());
  shapes_ = std::move(shapes);
  isReady_ = true;
  return {};
}

Status SubgraphRunner::growOutputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Place& place = outputs_[i];
    if (!place.isDynamic) continue;
    HEARTH_ASSIGN(const graph::Dimensions shape, compiled_->execution->outputShape(i));
    HEARTH_ASSIGN(const uint64_t bytes, boundBytes(*place.tensor, signedDims(shape)));
    const uint64_t room = place.custom != nullptr ? place.customBytes : place.memory.size();
    if (bytes <= room) continue;
    HEARTH_ASSIGN(place.bound, memoryFor(&place, bytes));
    HEARTH_TRY(bindOutput(i, place.memory.size()));
  }
  return {};
}

Status SubgraphRunner::describeDynamicOutputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Place& place = outputs_[i];
    if (!place.isDynamic) continue;
    HEARTH_ASSIGN(const graph::Dimensions shape, compiled_->execution->outputShape(i));
    HEARTH_TRY(tflite_abi::setDims(signedDims(shape), place.tensor));
    if (place.tensor->type != kTfLiteString) place.tensor->data = place.bound;
  }
  return {};
}

// Functions that write strings to a tensor make it a list of them, whatever it was before.
Status SubgraphRunner::followStrings() {
  if (inputShapes() == shapes_) return {};
  isReady_ = false;
  return allocate(options_);
}

Status SubgraphRunner::takeStrings() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Place& place = inputs_[i];
    if (place.tensor->type != kTfLiteString) continue;
    auto held = std::make_unique<HeldStrings>();
    HEARTH_TRY(readStrings(*place.tensor, held.get()));
    hal::Argument argument =
        argumentAt(held->elements.data(), held->elements.size() * sizeof(memory::StringHandle));
    const std::span<const int32_t> dims = tflite_abi::dimsOf(*place.tensor);
    argument.dimensions.assign(dims.begin(), dims.end());
    HEARTH_TRY(compiled_->execution->setInput(i, std::move(argument)));
    place.strings = std::move(held);
  }
  return {};
}

Status SubgraphRunner::giveStrings() {
  for (const Place& place : outputs_)
    if (place.tensor->type == kTfLiteString && !isInput(place.tensor))
      HEARTH_TRY(storeStrings(*compiled_->execution, place.bound, place.tensor));
  return {};
}

Status SubgraphRunner::invoke() {
  if (!isReady_) [[unlikely]]
    return fail(ErrorCode::kBadState, "Invoke called on model that is not ready.");
  if (compiled_->execution == nullptr) {
    giveInferred();
    return {};
  }
  return hasBuffers_ ? runWithBuffers() : run();
}

void SubgraphRunner::giveInferred() {
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (!isInput(outputs_[i].tensor))
      std::ranges::copy(*compiled_->inferred[i].value, static_cast<std::byte*>(outputs_[i].bound));
}

Status SubgraphRunner::runWithBuffers() {
  ProgramGraph& graph = graphs_->main();
  for (const Place& input : inputs_) {
    TfLiteTensor* const tensor = input.tensor;
    HEARTH_ASSIGN(const size_t index, tensors_->indexOf(tensor));
    if (tensor->data_is_stale && graph.isReadByOthers(index, tensor->delegate))
      HEARTH_TRY(ensureReadable(tensor));
    graph.setStale(index, tensor->data_is_stale);
  }
  for (const Place& output : outputs_) {
    HEARTH_ASSIGN(const size_t index, tensors_->indexOf(output.tensor));
    graph.setStale(index, output.tensor->data_is_stale);
  }
  HEARTH_TRY(run());
  for (const Place& output : outputs_) {
    HEARTH_ASSIGN(const size_t index, tensors_->indexOf(output.tensor));
    output.tensor->data_is_stale = graph.isStale(index);
  }
  return {};
}

Status SubgraphRunner::run() {
  if (!hasStrings_) [[likely]]
    return compute();
  HEARTH_TRY(followStrings());
  HEARTH_TRY(takeStrings());
  HEARTH_TRY(compute());
  return giveStrings();
}

Status SubgraphRunner::compute() {
  if (!hasDynamicOutputs_) [[likely]]
    return compiled_->execution->compute(base::Deadline());
  // Each failed run tells a size that was too small, in the worst case of one output only.
  for (size_t i = 0;; ++i) {
    const Status run = compiled_->execution->compute(base::Deadline());
    if (run) return describeDynamicOutputs();
    if (run.error().code() != ErrorCode::kOutputInsufficientSize || i > outputs_.size()) return run;
    HEARTH_TRY(growOutputs());
  }
}

Status SubgraphRunner::resetVariables() {
  if (compiled_ == nullptr || compiled_->execution == nullptr) return {};
  return compiled_->execution->resetState();
}

Status SubgraphRunner::setCustomAllocation(int32_t index, const TfLiteCustomAllocation& allocation,
                                           int64_t flags) {
  constexpr int64_t kSkipsAlignment = 1;
  if (allocation.data == nullptr)
    return fail(ErrorCode::kUnexpectedNull, "The memory for tensor {} is null.", index);
  if ((flags & kSkipsAlignment) == 0 &&
      reinterpret_cast<uintptr_t>(allocation.data) % runtime::kPreferredAlignment != 0)
    return fail(ErrorCode::kBadData, "The memory for tensor {} is not aligned to {} bytes.", index,
                runtime::kPreferredAlignment);
  const auto set = [&](std::vector<Place>* places, const std::vector<int32_t>& indices) {
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] != index) continue;
      (*places)[i].custom = allocation.data;
      (*places)[i].customBytes = allocation.bytes;
      (*places)[i].tensor->allocation_type = kTfLiteCustom;
      (*places)[i].tensor->data = allocation.data;
    }
  };
  HEARTH_ASSIGN(TfLiteTensor* const tensor, tensors_->at(static_cast<size_t>(index)));
  if (tensor->type == kTfLiteString)
    return fail(ErrorCode::kUnsupported,
                "The tensor \"{}\" is of strings, which take memory of their own.", tensor->name);
  const bool isPlace = std::ranges::contains(subgraph_.inputs, index) ||
                       std::ranges::contains(subgraph_.outputs, index);
  if (isPlace && isReady_ && allocation.bytes < tensor->bytes)
    return fail(ErrorCode::kBadData, "The memory for the tensor \"{}\" has {} bytes; it needs {}.",
                tensor->name, allocation.bytes, tensor->bytes);
  if (!isPlace) {
    if (tensor->allocation_type == kTfLiteMmapRo)
      return fail(ErrorCode::kUnsupported,
                  "The tensor \"{}\" is a constant, so it cannot have memory of the program.",
                  tensor->name);
    tensor->allocation_type = kTfLiteCustom;
    tensor->data = allocation.data;
    return {};
  }
  set(&inputs_, subgraph_.inputs);
  set(&outputs_, subgraph_.outputs);
  // The values of variables stay as they are.
  if (!isReady_) return {};
  for (size_t i = 0; i < inputs_.size(); ++i) HEARTH_TRY(placeInput(i));
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (!outputs_[i].isDynamic) {
      const std::span<const int32_t> dims = tflite_abi::dimsOf(*outputs_[i].tensor);
      HEARTH_TRY(placeOutput(i, graph::Dimensions(dims.begin(), dims.end())));
    } else {
      HEARTH_TRY(placeOutput(i, std::nullopt));
    }
  return {};
}

}  // namespace hearth::tflite_c
