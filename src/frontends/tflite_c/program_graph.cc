// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/program_graph.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "frontends/tflite_c/node_parameters.h"
#include "frontends/tflite_c/program_graphs.h"
#include "frontends/tflite_c/program_kernel.h"
#include "frontends/tflite_c/tensor_strings.h"
#include "tflite_abi/tensor_memory.h"

namespace hearth::tflite_c {
namespace {

constexpr int32_t kCustomCode = 32;
constexpr int32_t kIfCode = 118;
constexpr int32_t kWhileCode = 119;
// Operators that do more than to compute their outputs.
constexpr int32_t kStatefulCodes[] = {118, 119, 129, 136, 137, 138, 139, 142, 143, 144};

std::span<memory::StringHandle> elementsOf(const ops::Tensor& strings) {
  if (strings.data == nullptr) return {};
  return {strings.as<memory::StringHandle>(), strings.elementCount()};
}

bool hasShape(const TfLiteTensor& tensor, const ops::Tensor& wanted) {
  return std::ranges::equal(tflite_abi::dimsOf(tensor), wanted.dimensions, {}, {},
                            [](uint32_t dim) { return static_cast<int32_t>(dim); });
}

// Copies output `index`, which a kernel has computed in memory that is not the run's.
Status takeOutput(const TfLiteTensor& output, size_t index, const ops::Tensor& wanted) {
  if (!hasShape(output, wanted))
    return fail(ErrorCode::kOpFailed, "It gives output {} another size than before.", index);
  if (output.type == kTfLiteString) return putStrings(output, elementsOf(wanted));
  HEARTH_ASSIGN(const uint64_t bytes,
                tflite_abi::tensorBytes(output.type, tflite_abi::dimsOf(output)));
  if (bytes == 0) return {};
  if (output.data == nullptr || output.bytes != bytes)
    return fail(ErrorCode::kOpFailed, "It gives output {} {} bytes; its shape needs {}.", index,
                output.data == nullptr ? 0 : output.bytes, bytes);
  std::memcpy(wanted.data, output.data, bytes);
  return {};
}

}  // namespace

ProgramGraph::ProgramGraph(std::shared_ptr<const tflite::ModelFile> file, size_t subgraph,
                           tflite::FileSubgraph description, int32_t threads, ProgramGraphs* owner)
    : DelegatedGraph(subgraph_.outputs),
      file_(std::move(file)),
      index_(subgraph),
      subgraph_(std::move(description)),
      owner_(owner),
      table_(file_, subgraph, subgraph_.tensorCount) {
  context_.recommended_num_threads = threads;
}

ProgramGraph::~ProgramGraph() {
  close();
}

Result<std::shared_ptr<ProgramGraph>> ProgramGraph::create(
    std::shared_ptr<const tflite::ModelFile> file, size_t subgraph, int32_t threads,
    ProgramGraphs* owner) {
  HEARTH_ASSIGN(tflite::FileSubgraph description, file->fileSubgraph(subgraph));
  std::shared_ptr<ProgramGraph> made(
      new ProgramGraph(std::move(file), subgraph, std::move(description), threads, owner));
  HEARTH_TRY(made->readTensors());
  HEARTH_TRY(made->readNodes());
  return made;
}

Status ProgramGraph::readTensors() {
  std::vector<TfLiteTensor> tensors;
  std::vector<tflite_abi::IntArray> dims;
  for (size_t i = 0; i < subgraph_.tensorCount; ++i) {
    HEARTH_ASSIGN(const TfLiteTensor* const tensor, table_.at(i));
    dims.emplace_back(tflite_abi::makeIntArray(tflite_abi::dimsOf(*tensor)));
    tensors.push_back(*tensor);
  }
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].dims = dims[i].release();
  setTensors(std::move(tensors));
  return {};
}

Status ProgramGraph::readNodes() {
  HEARTH_ASSIGN(const std::vector<tflite::FileOperator> operators, file_->fileOperators(index_));
  for (size_t i = 0; i < operators.size(); ++i) {
    const tflite::FileOperator& source = operators[i];
    Node& made = addNode(i, source.inputs, source.outputs, source.intermediates);
    made.parameters = nodeParameters(source);
    made.node.builtin_data = made.parameters.get();
    made.node.custom_initial_data = source.customOptions.data();
    made.node.custom_initial_data_size = static_cast<int32_t>(source.customOptions.size());
    made.node.might_have_side_effect = std::ranges::contains(kStatefulCodes, source.code);
    made.registration.builtinCode = source.code;
    made.registration.version = source.version;
    made.registration.isCustom = source.code == kCustomCode;
    made.registration.customName = source.customName;
    showStructure(&made.registration);
  }
  return {};
}

Status ProgramGraph::useOperators(const ProgramResolver& resolver) {
  HEARTH_ASSIGN(const std::vector<tflite::FileOperator> operators, file_->fileOperators(index_));
  for (size_t i = 0; i < operators.size(); ++i) {
    const tflite::FileOperator& source = operators[i];
    std::optional<TfLiteOperator> found = resolver.find(source);
    if (!found && source.code != kCustomCode && !resolver.hasOthers())
      return fail(ErrorCode::kUnsupported, "Didn't find op for builtin opcode '{}' version '{}'.",
                  source.name, source.version);
    if (!found) continue;
    Node& node = nodes_[i];
    found->builtinCode = source.code;
    found->isCustom = source.code == kCustomCode;
    found->customName = source.customName;
    found->version = source.version;
    node.registration = std::move(*found);
    showStructure(&node.registration);
    beforeInit(&node, i);
    node.isOpen = true;
    const bool isCustom = source.code == kCustomCode;
    const void* const data = isCustom ? source.customOptions.data() : node.parameters.get();
    node.node.user_data = node.registration.callInit(&context_, static_cast<const char*>(data),
                                                     isCustom ? source.customOptions.size() : 0);
  }
  return {};
}

void ProgramGraph::beforeInit(Node* node, size_t index) {
  node->id = registerKernel(weak_from_this(), index);
}

void ProgramGraph::beforeFree(Node* node) {
  ahead_.clear();
  forgetKernel(node->id);
}

void ProgramGraph::removeDelegates() {
  const std::lock_guard lock(mutex_);
  removeKernels();
}

std::vector<tflite::PlannedOperator> ProgramGraph::plannedOperators() const {
  std::vector<tflite::PlannedOperator> made;
  for (const int32_t index : plan_) {
    const Node& node = nodes_[static_cast<size_t>(index)];
    tflite::PlannedOperator& planned = made.emplace_back();
    if (node.id == 0) {
      planned.operation = *node.operation;
      continue;
    }
    tflite::Replacement& replacement = planned.replacement.emplace();
    replacement.name = kernelOperatorName();
    replacement.options = kernelOptions(node.id);
    replacement.inputs.assign(node.inputs->data, node.inputs->data + node.inputs->size);
    replacement.outputs.assign(node.outputs->data, node.outputs->data + node.outputs->size);
  }
  return made;
}

void ProgramGraph::close() {
  const std::lock_guard lock(mutex_);
  isClosed_ = true;
  owner_ = nullptr;
  endKernels();
}

Status ProgramGraph::setHandle(size_t tensor, int32_t handle, TfLiteDelegate* delegate) {
  const std::lock_guard lock(mutex_);
  return setBufferHandle(tensor, handle, delegate);
}

Status ProgramGraph::copyFromHandle(TfLiteTensor* tensor) {
  const std::lock_guard lock(mutex_);
  return copyFromBuffer(tensor);
}

void ProgramGraph::allowStaleOutputs(bool allow) {
  const std::lock_guard lock(mutex_);
  allowStaleResults(allow);
}

void ProgramGraph::setStale(size_t tensor, bool isStale) {
  const std::lock_guard lock(mutex_);
  tensors_[tensor].data_is_stale = isStale;
}

bool ProgramGraph::isStale(size_t tensor) {
  const std::lock_guard lock(mutex_);
  return tensors_[tensor].data_is_stale;
}

bool ProgramGraph::isReadByOthers(size_t tensor, const TfLiteDelegate* delegate) const {
  return std::ranges::any_of(plan_, [&](int32_t index) {
    const Node& node = nodes_[static_cast<size_t>(index)];
    const std::span<const int32_t> inputs(node.inputs->data,
                                          static_cast<size_t>(node.inputs->size));
    return node.node.delegate != delegate &&
           std::ranges::contains(inputs, static_cast<int32_t>(tensor));
  });
}

// --- Other subgraphs ---

std::vector<size_t> ProgramGraph::calledSubgraphs() const {
  std::vector<size_t> called;
  for (const Node& node : nodes_) {
    const int32_t code = node.registration.builtinCode;
    if ((code != kIfCode && code != kWhileCode) || node.parameters == nullptr) continue;
    const auto& params = *static_cast<const SubgraphParams*>(node.parameters.get());
    for (const int32_t subgraph : {params.first, params.second})
      if (subgraph >= 0) called.push_back(static_cast<size_t>(subgraph));
  }
  return called;
}

TfLiteStatus ProgramGraph::acquireSubgraph(int32_t subgraph, TfLiteContext** acquired) {
  if (owner_ == nullptr || acquired == nullptr) return kTfLiteError;
  *acquired = owner_->context(subgraph);
  return *acquired == nullptr ? kTfLiteError : kTfLiteOk;
}

TfLiteStatus ProgramGraph::releaseSubgraph(int32_t subgraph) {
  return owner_ != nullptr && owner_->has(subgraph) ? kTfLiteOk : kTfLiteError;
}

bool ProgramGraph::isApplying() const {
  return owner_ != nullptr && owner_->isApplying();
}

TfLiteStatus ProgramGraph::skipSubgraph(int32_t subgraph) {
  return owner_ != nullptr && owner_->skip(subgraph) ? kTfLiteOk : kTfLiteError;
}

// --- Calls of kernels ---

Status ProgramGraph::setInputs(const Node& kernel, const ops::CustomCall& call) {
  const auto count = static_cast<size_t>(kernel.inputs->size);
  const auto outputs = static_cast<size_t>(kernel.outputs->size);
  if (isClosed_)
    return fail(ErrorCode::kBadState, "The interpreter with this delegate's kernel is gone.");
  if (call.inputs.size() != count || call.outputs.size() < outputs)
    return fail(ErrorCode::kBadData, "A delegate's kernel has other arguments than its nodes.");
  for (size_t i = 0; i < count; ++i) {
    if (!call.inputs[i].isPresent) continue;
    TfLiteTensor& tensor = tensors_[static_cast<size_t>(kernel.inputs->data[i])];
    if (tensor.allocation_type == kTfLiteMmapRo || !call.inputs[i].hasKnownShape) continue;
    const std::vector<int32_t> dims(call.inputs[i].dimensions.begin(),
                                    call.inputs[i].dimensions.end());
    const size_t before = tensor.bytes;
    HEARTH_TRY(tflite_abi::setDims(dims, &tensor));
    // What another kernel has allocated has other bytes now.
    if (tensor.allocation_type == kTfLiteDynamic && tensor.bytes != before)
      tflite_abi::freeTensorData(&tensor);
  }
  return {};
}

// Does nothing if the kernel was prepared for the shapes.
Status ProgramGraph::prepare(size_t node, const ops::CustomCall& call) {
  Node& kernel = nodes_[node];
  if (kernel.prepared &&
      std::ranges::equal(*kernel.prepared, call.inputs, {}, {}, &ops::Tensor::dimensions))
    return {};
  // Its outputs are about to change.
  ahead_.erase(node);
  HEARTH_TRY(prepareKernel(&kernel));
  std::vector<graph::Dimensions> shapes;
  for (const ops::Tensor& input : call.inputs) shapes.push_back(input.dimensions);
  kernel.prepared = std::move(shapes);
  return {};
}

// New values of variables are computed in place: in the memory of the outputs behind the kernel's
// own, or in `states` where there is none.
Status ProgramGraph::bindInputs(const Node& kernel, const ops::CustomCall& call, bool hasOutputs,
                                std::vector<std::vector<uint8_t>>* states) {
  auto next = static_cast<size_t>(kernel.outputs->size);
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i].isPresent) continue;
    TfLiteTensor& tensor = tensors_[static_cast<size_t>(kernel.inputs->data[i])];
    if (tensor.allocation_type == kTfLiteMmapRo) continue;
    if (tensor.type == kTfLiteString) {
      HEARTH_TRY(showStrings(elementsOf(call.inputs[i]), &tensor));
      continue;
    }
    if (tensor.allocation_type == kTfLiteDynamic) {
      // The output of another kernel, which allocates it.
      if (tflite_abi::reallocateTensor(tensor.bytes, false, &tensor) != kTfLiteOk)
        return fail(ErrorCode::kOutOfMemory, "There is no memory for a tensor of {} bytes.",
                    tensor.bytes);
      if (tensor.bytes != 0) std::memcpy(tensor.data, call.inputs[i].data, tensor.bytes);
      continue;
    }
    tensor.data = call.inputs[i].data;
    if (!tensor.is_variable) continue;
    if (next >= call.outputs.size())
      return fail(ErrorCode::kBadData, "A delegate's kernel lacks the new value of a variable.");
    void* value = call.outputs[next++].data;
    if (!hasOutputs) {
      states->emplace_back(tensor.bytes);
      value = states->back().data();
    }
    if (tensor.bytes != 0) std::memcpy(value, tensor.data, tensor.bytes);
    tensor.data = value;
  }
  return {};
}

std::vector<std::vector<uint8_t>> ProgramGraph::valuesOf(const Node& kernel,
                                                         const ops::CustomCall& call) const {
  std::vector<std::vector<uint8_t>> values(call.inputs.size());
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const ops::Tensor& input = call.inputs[i];
    if (input.data == nullptr) continue;
    const TfLiteTensor& tensor = tensors_[static_cast<size_t>(kernel.inputs->data[i])];
    if (tensor.allocation_type == kTfLiteMmapRo) continue;
    // setInputs() has set the bytes of those whose shape is known.
    uint64_t bytes = input.hasKnownShape ? tensor.bytes : 0;
    if (tensor.type == kTfLiteString) bytes = input.elementCount() * sizeof(memory::StringHandle);
    values[i].assign(input.as<uint8_t>(), input.as<uint8_t>() + bytes);
  }
  return values;
}

// Programs count the calls of their kernels, and rely on one for each run.
Status ProgramGraph::computeAhead(size_t node, const ops::CustomCall& call) {
  ahead_.erase(node);
  const Node& kernel = nodes_[node];
  Ahead ahead;
  ahead.inputs = valuesOf(kernel, call);
  ahead.states.reserve(call.inputs.size());
  HEARTH_TRY(bindInputs(kernel, call, false, &ahead.states));
  ahead.outputs.resize(static_cast<size_t>(kernel.outputs->size));
  for (size_t i = 0; i < ahead.outputs.size(); ++i) {
    TfLiteTensor& output = tensors_[static_cast<size_t>(kernel.outputs->data[i])];
    if (output.allocation_type == kTfLiteDynamic) continue;
    HEARTH_ASSIGN(ahead.outputs[i], tflite_abi::TensorMemory::allocate(output.bytes));
    output.data = ahead.outputs[i].data();
  }
  HEARTH_TRY(invokeKernel(kernel));
  for (size_t i = 0; i < ahead.outputs.size(); ++i) {
    const TfLiteTensor& output = tensors_[static_cast<size_t>(kernel.outputs->data[i])];
    if (output.allocation_type != kTfLiteDynamic && output.bytes != ahead.outputs[i].size())
      return fail(ErrorCode::kOpFailed, "It gives output {} another size than in its prepare.", i);
  }
  ahead_.emplace(node, std::move(ahead));
  return {};
}

Result<bool> ProgramGraph::takeAhead(size_t node, const ops::CustomCall& call) {
  const auto found = ahead_.extract(node);
  const Node& kernel = nodes_[node];
  if (found.empty() || found.mapped().inputs != valuesOf(kernel, call)) return false;
  const Ahead& ahead = found.mapped();
  for (size_t i = 0; i < ahead.outputs.size(); ++i) {
    const TfLiteTensor& output = tensors_[static_cast<size_t>(kernel.outputs->data[i])];
    HEARTH_TRY(takeOutput(output, i, call.outputs[i]));
  }
  for (size_t i = 0; i < ahead.states.size(); ++i) {
    const std::vector<uint8_t>& state = ahead.states[i];
    if (!state.empty())
      std::memcpy(call.outputs[ahead.outputs.size() + i].data, state.data(), state.size());
  }
  return true;
}

Result<ops::CustomOutputs> ProgramGraph::describe(size_t node, const ops::CustomCall& call) {
  const std::lock_guard lock(mutex_);
  const Node& kernel = nodes_[node];
  HEARTH_TRY(setInputs(kernel, call));
  HEARTH_TRY(prepare(node, call));
  if (hasDynamicOutputs(kernel)) {
    const bool knowsAll = std::ranges::all_of(call.inputs, [](const ops::Tensor& input) {
      return !input.isPresent || input.data != nullptr || input.elementCount() == 0;
    });
    if (!knowsAll) return ops::CustomOutputs{true, {}};
    HEARTH_TRY(computeAhead(node, call));
  }
  ops::CustomOutputs said;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    graph::Operand operand = *call.outputs[i].operand;
    if (i < static_cast<size_t>(kernel.outputs->size)) {
      const std::span<const int32_t> dims =
          tflite_abi::dimsOf(tensors_[static_cast<size_t>(kernel.outputs->data[i])]);
      operand.dimensions.assign(dims.begin(), dims.end());
      operand.isRankZeroTensor = dims.empty();
    }
    said.outputs.push_back(std::move(operand));
  }
  return said;
}

Status ProgramGraph::compute(size_t node, const ops::CustomCall& call) {
  const std::lock_guard lock(mutex_);
  const Node& kernel = nodes_[node];
  HEARTH_TRY(setInputs(kernel, call));
  HEARTH_ASSIGN(const bool isComputed, takeAhead(node, call));
  if (isComputed) return {};
  HEARTH_TRY(prepare(node, call));
  std::vector<std::vector<uint8_t>> none;
  HEARTH_TRY(bindInputs(kernel, call, true, &none));
  for (size_t i = 0; i < static_cast<size_t>(kernel.outputs->size); ++i) {
    TfLiteTensor& output = tensors_[static_cast<size_t>(kernel.outputs->data[i])];
    if (output.allocation_type == kTfLiteDynamic) continue;
    if (!hasShape(output, call.outputs[i]))
      return fail(ErrorCode::kOpFailed, "Its prepare gives an output another shape than before.");
    output.data = call.outputs[i].data;
  }
  HEARTH_TRY(invokeKernel(kernel));
  for (size_t i = 0; i < static_cast<size_t>(kernel.outputs->size); ++i) {
    TfLiteTensor& output = tensors_[static_cast<size_t>(kernel.outputs->data[i])];
    if (output.allocation_type != kTfLiteDynamic) continue;
    HEARTH_TRY(takeOutput(output, i, call.outputs[i]));
  }
  return {};
}

}  // namespace hearth::tflite_c
