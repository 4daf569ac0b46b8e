// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/subgraph_runner.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/sha256.h"
#include "ops/specialized_model.h"
#include "runtime/compilation.h"
#include "runtime/device_manager.h"
#include "runtime/start_record.h"

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

// One token for each program's token and subgraph.
std::shared_ptr<const runtime::CacheRequest> cacheRequest(const delegate::DelegateOptions& options,
                                                          size_t subgraph) {
  base::Sha256 hash;
  hash.update(options.modelToken.data(), options.modelToken.size());
  hash.update(&subgraph, sizeof(subgraph));
  runtime::CacheRequest request;
  request.folder = options.cacheFolder;
  request.token = hash.finish();
  return std::make_shared<const runtime::CacheRequest>(std::move(request));
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
      imported_(std::move(imported)),
      tensors_(std::make_unique<TensorTable>(file_, subgraph, subgraph_.tensorCount)),
      inputs_(subgraph_.inputs.size()),
      outputs_(subgraph_.outputs.size()),
      hasUnknownInputs_(imported_ && ops::hasUnknownInputs(*imported_->model)) {}

Status SubgraphRunner::findPlaces() {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    HEARTH_ASSIGN(inputs_[i].tensor, tensors_->at(static_cast<size_t>(subgraph_.inputs[i])));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    HEARTH_ASSIGN(outputs_[i].tensor, tensors_->at(static_cast<size_t>(subgraph_.outputs[i])));
  }
  return {};
}

Status SubgraphRunner::resizeInput(size_t position, std::span<const int32_t> dims, bool isStrict) {
  if (position >= inputs_.size())
    return fail(ErrorCode::kBadData, "There is no input {}; the model has {}.", position,
                inputs_.size());
  TfLiteTensor& tensor = *inputs_[position].tensor;
  if (isStrict) {
    const std::span<const int32_t> before = dimsOf(tensor);
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
  if (std::ranges::equal(dims, dimsOf(tensor))) return {};
  HEARTH_TRY(TensorTable::setDims(dims, &tensor));
  if (tensor.allocation_type != kTfLiteCustom) tensor.data = nullptr;
  isReady_ = false;
  return {};
}

std::vector<graph::Dimensions> SubgraphRunner::inputShapes() const {
  std::vector<graph::Dimensions> shapes;
  for (const Place& input : inputs_) {
    const std::span<const int32_t> dims = dimsOf(*input.tensor);
    shapes.emplace_back(dims.begin(), dims.end());
  }
  return shapes;
}

Status SubgraphRunner::checkShapes(const std::vector<graph::Dimensions>& shapes) const {
  const graph::Subgraph& main = imported_->model->main();
  for (size_t i = 0; i < shapes.size(); ++i) {
    const graph::Operand& operand = main.operands[main.inputs[i]];
    const bool isUnranked =
        operand.dimensions.empty() && !operand.isRankZeroTensor && !graph::isScalar(operand.type);
    if (isUnranked) continue;
    const bool fits =
        shapes[i].size() == operand.dimensions.size() &&
        std::ranges::equal(shapes[i], operand.dimensions, [](uint32_t given, uint32_t known) {
          return known == 0 || given == known;
        });
    if (!fits)
      return fail(ErrorCode::kUnsupported,
                  "The input \"{}\" cannot have the shape {}: the model was written for {}, in "
                  "which it leaves no other dimension open.",
                  inputs_[i].tensor->name, graph::describeDimensions(shapes[i]),
                  graph::describe(operand));
  }
  return {};
}

Status SubgraphRunner::compile(const std::vector<graph::Dimensions>& shapes,
                               const delegate::DelegateOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  runtime::CompilationOptions wanted = options.compilation;
  wanted.prepare.threads = options.threads;
  if (hasUnknownInputs_) {
    wanted.prepare.expectedInputs = shapes;
    const graph::Subgraph& main = imported_->model->main();
    for (size_t i = shapes.size(); i < main.inputs.size(); ++i)
      wanted.prepare.expectedInputs.push_back(main.operands[main.inputs[i]].dimensions);
  }
  if (!options.cacheFolder.empty()) wanted.cache = cacheRequest(options, index_);
  std::shared_ptr<const graph::Model> model = imported_->model;
  if (options.allowsFp16) {
    auto relaxed = std::make_shared<graph::Model>(*model);
    relaxed->relaxFloat32ToFloat16 = true;
    model = std::move(relaxed);
  }
  HEARTH_ASSIGN(auto compilation,
                runtime::Compilation::create(std::move(model), imported_->states, wanted,
                                             runtime::DeviceManager::shared()));
  if (runtime::isReportWanted()) {
    runtime::StartRecord record;
    record.device = compilation->deviceNames();
    record.cache = compilation->cacheOutcome();
    record.prepareMs =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    record.setReport(compilation->preparedModel().startReportSoFar());
    runtime::appendToReport(record);
  }
  HEARTH_ASSIGN(execution_, runtime::Execution::create(std::move(compilation)));
  return {};
}

std::vector<std::optional<graph::Dimensions>> SubgraphRunner::outputShapes(
    const std::vector<graph::Dimensions>& shapes) const {
  std::vector<std::optional<graph::Dimensions>> found(outputs_.size());
  const auto read = [&](const graph::Model& model) {
    bool isWhole = true;
    for (size_t i = 0; i < found.size(); ++i) {
      const graph::Operand& output = model.main().operands[model.main().outputs[i]];
      if (graph::isFullySpecified(output))
        found[i] = output.dimensions;
      else
        isWhole = false;
    }
    return isWhole;
  };
  if (read(*imported_->model) || !hasUnknownInputs_) return found;
  std::vector<graph::Dimensions> all = shapes;
  const graph::Subgraph& main = imported_->model->main();
  for (size_t i = all.size(); i < main.inputs.size(); ++i)
    all.push_back(main.operands[main.inputs[i]].dimensions);
  // What it cannot tell, a run tells.
  if (const Result<ops::SpecializedModel> special = ops::specialize(*imported_->model, all))
    read(*special->model);
  return found;
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
    HEARTH_ASSIGN(place->memory, TensorMemory::allocate(bytes));
  }
  return place->memory.data();
}

Status SubgraphRunner::bindInput(size_t position) {
  Place& place = inputs_[position];
  hal::Argument argument = argumentAt(place.tensor->data, place.tensor->bytes);
  if (hasUnknownInputs_) {
    const std::span<const int32_t> dims = dimsOf(*place.tensor);
    argument.dimensions.assign(dims.begin(), dims.end());
  }
  return execution_->setInput(position, std::move(argument));
}

Status SubgraphRunner::placeInput(size_t position) {
  Place& place = inputs_[position];
  TfLiteTensor& tensor = *place.tensor;
  // A subgraph may name one tensor twice.
  const auto same = std::ranges::find(inputs_, &tensor, &Place::tensor);
  if (same == inputs_.begin() + static_cast<ptrdiff_t>(position)) {
    HEARTH_ASSIGN(tensor.data, memoryFor(&place, tensor.bytes));
    if (place.custom == nullptr) tensor.allocation_type = kTfLiteArenaRw;
  }
  return bindInput(position);
}

Status SubgraphRunner::bindOutput(size_t position, uint64_t bytes) {
  Place& place = outputs_[position];
  return execution_->setOutput(position, argumentAt(place.bound, bytes));
}

Status SubgraphRunner::placeOutput(size_t position, const std::optional<graph::Dimensions>& shape) {
  Place& place = outputs_[position];
  TfLiteTensor& tensor = *place.tensor;
  const bool isInput = std::ranges::find(inputs_, &tensor, &Place::tensor) != inputs_.end();
  const auto same = std::ranges::find(outputs_, &tensor, &Place::tensor);
  const bool isRepeated = same != outputs_.begin() + static_cast<ptrdiff_t>(position);
  if (isInput) {
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
    if (!isRepeated) HEARTH_TRY(TensorTable::setDims(signedDims(*shape), &tensor));
    bytes = tensor.bytes;
  }
  HEARTH_ASSIGN(place.bound, memoryFor(&place, bytes));
  if (!isRepeated) {
    if (place.custom == nullptr)
      tensor.allocation_type = place.isDynamic ? kTfLiteDynamic : kTfLiteArenaRw;
    tensor.data = place.isDynamic ? nullptr : place.bound;
  }
  return bindOutput(position, bytes);
}

Status SubgraphRunner::allocate(const delegate::DelegateOptions& options) {
  if (isReady_) return {};
  if (!imported_) return std::unexpected(imported_.error());
  const std::vector<graph::Dimensions> shapes = inputShapes();
  HEARTH_TRY(checkShapes(shapes));
  if (execution_ == nullptr) {
    HEARTH_TRY(compile(shapes, options));
  } else {
    HEARTH_TRY(execution_->resetState());
  }
  for (size_t i = 0; i < inputs_.size(); ++i) HEARTH_TRY(placeInput(i));
  hasDynamicOutputs_ = false;
  const std::vector<std::optional<graph::Dimensions>> outputs = outputShapes(shapes);
  for (size_t i = 0; i < outputs_.size(); ++i) HEARTH_TRY(placeOutput(i, outputs[i]));
  isReady_ = true;
  return {};
}

Status SubgraphRunner::growOutputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Place& place = outputs_[i];
    if (!place.isDynamic) continue;
    HEARTH_ASSIGN(const graph::Dimensions shape, execution_->outputShape(i));
    HEARTH_ASSIGN(const uint64_t bytes, tensorBytes(place.tensor->type, signedDims(shape)));
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
    HEARTH_ASSIGN(const graph::Dimensions shape, execution_->outputShape(i));
    HEARTH_TRY(TensorTable::setDims(signedDims(shape), place.tensor));
    place.tensor->data = place.bound;
  }
  return {};
}

Status SubgraphRunner::invoke() {
  if (!isReady_) [[unlikely]]
    return fail(ErrorCode::kBadState,
                "Invoke called on model that is not ready: allocate its tensors first, and again "
                "after an input was resized.");
  if (!hasDynamicOutputs_) [[likely]]
    return execution_->compute(base::Deadline());
  // Each failed run tells a size that was too small, in the worst case of one output only.
  for (size_t i = 0;; ++i) {
    const Status run = execution_->compute(base::Deadline());
    if (run) return describeDynamicOutputs();
    if (run.error().code() != ErrorCode::kOutputInsufficientSize || i > outputs_.size()) return run;
    HEARTH_TRY(growOutputs());
  }
}

Status SubgraphRunner::resetVariables() {
  if (execution_ == nullptr) return {};
  return execution_->resetState();
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
  const auto set = [&](std::vector<Place>* places, const std::vector<int32_t>& indices) -> bool {
    bool isFound = false;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] != index) continue;
      (*places)[i].custom = allocation.data;
      (*places)[i].customBytes = allocation.bytes;
      (*places)[i].tensor->allocation_type = kTfLiteCustom;
      (*places)[i].tensor->data = allocation.data;
      isFound = true;
    }
    return isFound;
  };
  const auto isListed = [&](const std::vector<int32_t>& indices) {
    return std::ranges::find(indices, index) != indices.end();
  };
  if (!isListed(subgraph_.inputs) && !isListed(subgraph_.outputs))
    return fail(ErrorCode::kUnsupported,
                "Tensor {} is neither an input nor an output, so it cannot have memory of the "
                "program.",
                index);
  HEARTH_ASSIGN(const TfLiteTensor* const tensor, tensors_->at(static_cast<size_t>(index)));
  if (isReady_ && allocation.bytes < tensor->bytes)
    return fail(ErrorCode::kBadData, "The memory for the tensor \"{}\" has {} bytes; it needs {}.",
                tensor->name, allocation.bytes, tensor->bytes);
  set(&inputs_, subgraph_.inputs);
  set(&outputs_, subgraph_.outputs);
  // The values of variables stay as they are.
  if (!isReady_) return {};
  for (size_t i = 0; i < inputs_.size(); ++i) HEARTH_TRY(placeInput(i));
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (!outputs_[i].isDynamic) {
      const std::span<const int32_t> dims = dimsOf(*outputs_[i].tensor);
      HEARTH_TRY(placeOutput(i, graph::Dimensions(dims.begin(), dims.end())));
    } else {
      HEARTH_TRY(placeOutput(i, std::nullopt));
    }
  return {};
}

}  // namespace hearth::tflite_c
