// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/program_graph.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/caught.h"
#include "frontends/tflite_c/program_kernel.h"
#include "frontends/tflite_c/tensor_type.h"

namespace hearth::tflite_c {
namespace {

constexpr int32_t kCustomCode = 32;
constexpr int32_t kDelegateCode = 51;
// Operators that do more than to compute their outputs.
constexpr int32_t kStatefulCodes[] = {118, 119, 129, 136, 137, 138, 139, 142, 143, 144};

// The structure of an opaque delegate's parameters, which its kernels get.
struct OpaqueDelegateParams {
  TfLiteDelegate* delegate;
  void* data;
  TfLiteIntArray* nodes;
  TfLiteIntArray* inputs;
  TfLiteIntArray* outputs;
};

const TfLiteOpaqueDelegateBuilder* builderOf(const TfLiteDelegate& delegate) {
  // Structures that are older than the field have the function.
  if (delegate.Prepare != nullptr) return nullptr;
  return static_cast<const TfLiteOpaqueDelegateBuilder*>(delegate.opaque_delegate_builder);
}

void showStructure(TfLiteOperator* registration) {
  TfLiteRegistration& shown = registration->structure;
  shown.init = registration->init;
  shown.free = registration->release;
  shown.prepare = registration->prepare;
  shown.invoke = registration->invoke;
  shown.builtin_code = registration->builtinCode;
  shown.custom_name = registration->isCustom ? registration->customName.c_str() : nullptr;
  shown.version = registration->version;
  shown.registration_external = registration;
}

}  // namespace

ProgramGraph::Partition::Partition(const NodeSubset& subset)
    : nodes(makeIntArray(subset.nodes)),
      inputs(makeIntArray(subset.inputs)),
      outputs(makeIntArray(subset.outputs)) {}

ProgramGraph::ProgramGraph(std::shared_ptr<const tflite::ModelFile> file, size_t subgraph,
                           tflite::FileSubgraph description, int32_t threads)
    : file_(std::move(file)),
      index_(subgraph),
      subgraph_(std::move(description)),
      table_(file_, subgraph, subgraph_.tensorCount) {
  context_.recommended_num_threads = threads;
}

ProgramGraph::~ProgramGraph() {
  close();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (i >= subgraph_.tensorCount) {
      TfLiteTensorFree(&tensors_[i]);
      continue;
    }
    if (tensors_[i].allocation_type == kTfLiteDynamic) std::free(tensors_[i].data);
    std::free(tensors_[i].dims);
  }
}

Result<std::shared_ptr<ProgramGraph>> ProgramGraph::create(
    std::shared_ptr<const tflite::ModelFile> file, size_t subgraph, int32_t threads) {
  HEARTH_ASSIGN(tflite::FileSubgraph description, file->fileSubgraph(subgraph));
  std::shared_ptr<ProgramGraph> made(
      new ProgramGraph(std::move(file), subgraph, std::move(description), threads));
  HEARTH_TRY(made->readTensors());
  HEARTH_TRY(made->readNodes());
  return made;
}

Status ProgramGraph::readTensors() {
  // Room for the temporaries of some kernels, so that tensors mostly stay where they are.
  constexpr size_t kRoom = 128;
  tensors_.reserve(subgraph_.tensorCount + kRoom);
  for (size_t i = 0; i < subgraph_.tensorCount; ++i) {
    HEARTH_ASSIGN(const TfLiteTensor* const tensor, table_.at(i));
    IntArray dims(makeIntArray(dimsOf(*tensor)));
    tensors_.push_back(*tensor);
    tensors_.back().dims = dims.release();
  }
  context_.tensors = tensors_.data();
  context_.tensors_size = tensors_.size();
  return {};
}

Status ProgramGraph::readNodes() {
  HEARTH_ASSIGN(const std::vector<tflite::FileOperator> operators, file_->fileOperators(index_));
  for (size_t i = 0; i < operators.size(); ++i) {
    const tflite::FileOperator& source = operators[i];
    Node& made = nodes_.emplace_back();
    made.inFile = i;
    made.inputs.reset(makeIntArray(source.inputs));
    made.outputs.reset(makeIntArray(source.outputs));
    made.intermediates.reset(makeIntArray(source.intermediates));
    made.parameters = nodeParameters(source);
    made.node.inputs = made.inputs.get();
    made.node.outputs = made.outputs.get();
    made.node.intermediates = made.intermediates.get();
    made.node.temporaries = makeIntArray({});
    made.node.builtin_data = made.parameters.get();
    made.node.custom_initial_data = source.customOptions.data();
    made.node.custom_initial_data_size = static_cast<int32_t>(source.customOptions.size());
    made.node.might_have_side_effect = std::ranges::contains(kStatefulCodes, source.code);
    made.registration.builtinCode = source.code;
    made.registration.version = source.version;
    made.registration.isCustom = source.code == kCustomCode;
    made.registration.customName = source.customName;
    showStructure(&made.registration);
    plan_.push_back(static_cast<int32_t>(i));
  }
  return {};
}

bool ProgramGraph::isVariable(int32_t tensor) const {
  return tensor >= 0 && tensors_[static_cast<size_t>(tensor)].is_variable;
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
    node.id = registerKernel(weak_from_this(), i);
    node.isOpen = true;
    const bool isCustom = source.code == kCustomCode;
    const void* const data = isCustom ? source.customOptions.data() : node.parameters.get();
    node.node.user_data = node.registration.callInit(&context_, static_cast<const char*>(data),
                                                     isCustom ? source.customOptions.size() : 0);
  }
  return {};
}

// --- What delegates ask and do ---

Status ProgramGraph::apply(TfLiteDelegate* delegate, bool hasDynamicTensors,
                           const std::function<Status()>& accept) {
  const TfLiteOpaqueDelegateBuilder* const builder = builderOf(*delegate);
  if (delegate->Prepare == nullptr && (builder == nullptr || builder->Prepare == nullptr))
    return fail(ErrorCode::kUnexpectedNull, "The delegate has no Prepare.");
  if (hasDynamicTensors && !allowsDynamicTensors(*delegate))
    return fail(ErrorCode::kUnsupported,
                "The delegate takes graphs with static sizes only, and this one has tensors whose "
                "sizes depend on values.");
  const std::vector<int32_t> planBefore = plan_;
  const size_t nodesBefore = nodes_.size();
  takeMessage();
  isApplying_ = true;
  const Result<TfLiteStatus> status = base::caught([&]() -> Result<TfLiteStatus> {
    return builder == nullptr ? delegate->Prepare(&context_, delegate)
                              : builder->Prepare(&context_, delegate, builder->data);
  });
  isApplying_ = false;
  previewed_.clear();
  previewParams_.clear();
  Status applied = programStatus("Prepare", status, takeMessage());
  if (applied) applied = accept();
  if (applied) return applied;
  plan_ = planBefore;
  while (nodes_.size() > nodesBefore) {
    free(&nodes_.back());
    nodes_.pop_back();
  }
  return std::unexpected(std::move(applied.error()).addContext("while applying a delegate"));
}

bool ProgramGraph::allowsDynamicTensors(const TfLiteDelegate& delegate) {
  const TfLiteOpaqueDelegateBuilder* const builder = builderOf(delegate);
  const int64_t flags = builder == nullptr ? delegate.flags : builder->flags;
  return (flags & kTfLiteDelegateFlagsAllowDynamicTensors) != 0;
}

bool ProgramGraph::hasDelegates() const {
  return !nodes_.empty() && !nodes_.back().inFile;
}

void ProgramGraph::removeDelegates() {
  const std::lock_guard lock(mutex_);
  while (hasDelegates()) {
    free(&nodes_.back());
    nodes_.pop_back();
  }
  plan_.resize(nodes_.size());
  std::ranges::iota(plan_, 0);
}

TfLiteStatus ProgramGraph::plan(TfLiteIntArray** plan) {
  if (plan == nullptr) return kTfLiteError;
  *plan = nullptr;
  const Status made = base::caught([&] { planArray_.reset(makeIntArray(plan_)); });
  if (!made) return kTfLiteError;
  *plan = planArray_.get();
  return kTfLiteOk;
}

TfLiteStatus ProgramGraph::node(int32_t index, TfLiteNode** node, TfLiteOperator** registration) {
  if (index < 0 || static_cast<size_t>(index) >= nodes_.size()) {
    context_.ReportError(&context_, "There is no node %d; the graph has %d.", index,
                         static_cast<int>(nodes_.size()));
    return kTfLiteError;
  }
  Node& found = nodes_[static_cast<size_t>(index)];
  if (node != nullptr) *node = &found.node;
  if (registration != nullptr) *registration = &found.registration;
  return kTfLiteOk;
}

std::vector<PlannedNode> ProgramGraph::plannedNodes() const {
  std::vector<PlannedNode> planned;
  for (const int32_t index : plan_) {
    const TfLiteNode& node = nodes_[static_cast<size_t>(index)].node;
    PlannedNode& made = planned.emplace_back();
    made.index = index;
    made.inputs.assign(node.inputs->data, node.inputs->data + node.inputs->size);
    made.outputs.assign(node.outputs->data, node.outputs->data + node.outputs->size);
    made.hasSideEffects = node.might_have_side_effect;
    for (const int32_t input : made.inputs)
      if (isVariable(input)) made.states.push_back(input);
  }
  return planned;
}

std::optional<std::set<int32_t>> ProgramGraph::nodesOf(const TfLiteIntArray* list) {
  std::set<int32_t> nodes;
  if (list == nullptr) return nodes;
  for (int32_t i = 0; i < list->size; ++i) {
    const int32_t index = list->data[i];
    if (!std::ranges::contains(plan_, index) ||
        nodes_[static_cast<size_t>(index)].node.delegate != nullptr) {
      context_.ReportError(&context_, "Node %d cannot be taken.", index);
      return std::nullopt;
    }
    nodes.insert(index);
  }
  return nodes;
}

TfLiteStatus ProgramGraph::preview(const TfLiteIntArray* nodes, TfLiteDelegateParams** partitions,
                                   int32_t* count) {
  if (partitions == nullptr || count == nullptr) return kTfLiteError;
  *partitions = nullptr;
  *count = 0;
  const Status made = base::caught([&]() -> Status {
    previewed_.clear();
    previewParams_.clear();
    const auto taken = nodesOf(nodes);
    if (!taken) return fail(ErrorCode::kBadData, "The list of nodes is wrong.");
    for (const NodeSubset& subset : partitionNodes(plannedNodes(), *taken, subgraph_.outputs)) {
      if (!subset.isTaken) continue;
      previewed_.emplace_back(subset);
      previewParams_.push_back(previewed_.back().params(nullptr));
    }
    return {};
  });
  if (!made) return kTfLiteError;
  *partitions = previewParams_.data();
  *count = static_cast<int32_t>(previewParams_.size());
  return kTfLiteOk;
}

TfLiteStatus ProgramGraph::replace(const TfLiteOperator& registration, const TfLiteIntArray* nodes,
                                   TfLiteDelegate* delegate) {
  if (!isApplying_ || delegate == nullptr) {
    context_.ReportError(&context_, "Nodes can be replaced during a delegate's Prepare only.");
    return kTfLiteError;
  }
  const auto taken = nodesOf(nodes);
  if (!taken) return kTfLiteError;
  std::vector<int32_t> planned;
  for (const NodeSubset& subset : partitionNodes(plannedNodes(), *taken, subgraph_.outputs)) {
    if (subset.isTaken)
      planned.push_back(addKernel(registration, subset, delegate));
    else
      planned.insert(planned.end(), subset.nodes.begin(), subset.nodes.end());
  }
  plan_ = std::move(planned);
  return kTfLiteOk;
}

int32_t ProgramGraph::addKernel(const TfLiteOperator& registration, const NodeSubset& subset,
                                TfLiteDelegate* delegate) {
  Node& made = nodes_.emplace_back();
  made.registration = registration;
  made.registration.builtinCode = kDelegateCode;
  showStructure(&made.registration);
  made.partition = std::make_unique<Partition>(subset);
  made.inputs.reset(makeIntArray(subset.inputs));
  made.outputs.reset(makeIntArray(subset.outputs));
  made.intermediates.reset(makeIntArray({}));
  made.node.inputs = made.inputs.get();
  made.node.outputs = made.outputs.get();
  made.node.intermediates = made.intermediates.get();
  made.node.temporaries = makeIntArray({});
  made.node.delegate = delegate;
  made.id = registerKernel(weak_from_this(), nodes_.size() - 1);
  const TfLiteDelegateParams params = made.partition->params(delegate);
  const OpaqueDelegateParams opaque = {delegate, delegate->data_, params.nodes_to_replace,
                                       params.input_tensors, params.output_tensors};
  const bool isOpaque = builderOf(*delegate) != nullptr;
  const void* const given = isOpaque ? static_cast<const void*>(&opaque) : &params;
  made.isOpen = true;
  made.node.user_data = made.registration.callInit(&context_, static_cast<const char*>(given), 0);
  return static_cast<int32_t>(nodes_.size() - 1);
}

TfLiteStatus ProgramGraph::addTensors(int32_t count, int32_t* first) {
  constexpr int32_t kMost = 1 << 20;
  if (count < 0 || count > kMost) return kTfLiteError;
  const auto begin = static_cast<int32_t>(tensors_.size());
  const Status added = base::caught([&] {
    tensors_.resize(tensors_.size() + static_cast<size_t>(count));
    for (size_t i = static_cast<size_t>(begin); i < tensors_.size(); ++i)
      tensors_[i].buffer_handle = -1;
  });
  context_.tensors = tensors_.data();
  context_.tensors_size = tensors_.size();
  if (!added) return kTfLiteError;
  if (first != nullptr) *first = begin;
  return kTfLiteOk;
}

TfLiteStatus ProgramGraph::resize(TfLiteTensor* tensor, TfLiteIntArray* dims) {
  const IntArray holder(dims);
  const bool isOwn = tensor >= tensors_.data() && tensor < tensors_.data() + tensors_.size();
  if (!isOwn || dims == nullptr || dims->size < 0 || tensor->allocation_type == kTfLiteMmapRo)
    return kTfLiteError;
  return resizeTensor(dims, tensor);
}

std::vector<tflite::PlannedOperator> ProgramGraph::plannedOperators() const {
  std::vector<tflite::PlannedOperator> made;
  for (const int32_t index : plan_) {
    const Node& node = nodes_[static_cast<size_t>(index)];
    tflite::PlannedOperator& planned = made.emplace_back();
    if (node.id == 0) {
      planned.operation = *node.inFile;
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

void ProgramGraph::free(Node* kernel) {
  if (!std::exchange(kernel->isOpen, false)) return;
  forgetKernel(kernel->id);
  base::logged("A delegate's free",
               [&] { kernel->registration.callFree(&context_, kernel->node.user_data); });
}

void ProgramGraph::close() {
  const std::lock_guard lock(mutex_);
  isClosed_ = true;
  for (Node& node : nodes_) free(&node);
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
    HEARTH_TRY(TensorTable::setDims(dims, &tensor));
  }
  return {};
}

Status ProgramGraph::prepare(Node* kernel, const ops::CustomCall& call) {
  kernel->prepared.reset();
  for (int32_t i = 0; i < kernel->outputs->size; ++i) {
    TfLiteTensor& output = tensors_[static_cast<size_t>(kernel->outputs->data[i])];
    if (output.allocation_type == kTfLiteDynamic) std::free(output.data);
    output.data = nullptr;
    output.allocation_type = kTfLiteArenaRw;
  }
  const Result<TfLiteStatus> status = base::caught([&]() -> Result<TfLiteStatus> {
    return kernel->registration.callPrepare(&context_, &kernel->node);
  });
  HEARTH_TRY(programStatus("prepare", status, takeMessage()));
  Shapes shapes;
  for (const ops::Tensor& input : call.inputs) shapes.push_back(input.dimensions);
  kernel->prepared = std::move(shapes);
  return placeTemporaries(*kernel);
}

Status ProgramGraph::placeTemporaries(const Node& kernel) {
  const TfLiteIntArray* const temporaries = kernel.node.temporaries;
  for (int32_t i = 0; temporaries != nullptr && i < temporaries->size; ++i) {
    const int32_t index = temporaries->data[i];
    if (index < 0 || static_cast<size_t>(index) >= tensors_.size())
      return fail(ErrorCode::kBadData, "A delegate's kernel has the temporary tensor {}.", index);
    TfLiteTensor& tensor = tensors_[static_cast<size_t>(index)];
    if (tensor.allocation_type != kTfLiteArenaRw &&
        tensor.allocation_type != kTfLiteArenaRwPersistent)
      continue;
    TensorMemory& memory = memory_[index];
    if (memory.data() == nullptr || memory.size() < tensor.bytes) {
      HEARTH_ASSIGN(memory, TensorMemory::allocate(tensor.bytes));
    }
    tensor.data = memory.data();
  }
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

Status ProgramGraph::invoke(const Node& kernel) {
  const Result<TfLiteStatus> status = base::caught([&]() -> Result<TfLiteStatus> {
    return kernel.registration.callInvoke(&context_, const_cast<TfLiteNode*>(&kernel.node));
  });
  HEARTH_TRY(programStatus("invoke", status, takeMessage()));
  TfLiteDelegate* const delegate = kernel.node.delegate;
  if (delegate == nullptr) return {};
  const TfLiteOpaqueDelegateBuilder* const builder = builderOf(*delegate);
  for (int32_t i = 0; i < kernel.outputs->size; ++i) {
    // What lies in a buffer of the delegate's.
    TfLiteTensor& output = tensors_[static_cast<size_t>(kernel.outputs->data[i])];
    if (!output.data_is_stale || output.delegate != delegate || output.buffer_handle < 0) continue;
    const Result<TfLiteStatus> copied = base::caught([&]() -> Result<TfLiteStatus> {
      if (builder != nullptr && builder->CopyFromBufferHandle != nullptr)
        return builder->CopyFromBufferHandle(&context_, delegate, builder->data,
                                             output.buffer_handle, &output);
      if (builder == nullptr && delegate->CopyFromBufferHandle != nullptr)
        return delegate->CopyFromBufferHandle(&context_, delegate, output.buffer_handle, &output);
      return kTfLiteError;
    });
    HEARTH_TRY(programStatus("CopyFromBufferHandle", copied, takeMessage()));
    output.data_is_stale = false;
  }
  return {};
}

bool ProgramGraph::hasDynamicOutputs(const Node& kernel) const {
  for (int32_t i = 0; i < kernel.outputs->size; ++i)
    if (tensors_[static_cast<size_t>(kernel.outputs->data[i])].allocation_type == kTfLiteDynamic)
      return true;
  return false;
}

Result<ops::CustomOutputs> ProgramGraph::describe(size_t node, const ops::CustomCall& call) {
  const std::lock_guard lock(mutex_);
  Node& kernel = nodes_[node];
  HEARTH_TRY(setInputs(kernel, call));
  HEARTH_TRY(prepare(&kernel, call));
  if (hasDynamicOutputs(kernel)) {
    const bool knowsAll = std::ranges::all_of(call.inputs, [](const ops::Tensor& input) {
      return !input.isPresent || input.data != nullptr || input.elementCount() == 0;
    });
    if (!knowsAll) return ops::CustomOutputs{true, {}};
    std::vector<std::vector<uint8_t>> states;
    states.reserve(call.inputs.size());
    HEARTH_TRY(bindInputs(kernel, call, false, &states));
    std::vector<TensorMemory> memory;
    for (int32_t i = 0; i < kernel.outputs->size; ++i) {
      TfLiteTensor& output = tensors_[static_cast<size_t>(kernel.outputs->data[i])];
      if (output.allocation_type == kTfLiteDynamic) continue;
      HEARTH_ASSIGN(memory.emplace_back(), TensorMemory::allocate(output.bytes));
      output.data = memory.back().data();
    }
    HEARTH_TRY(invoke(kernel));
    kernel.prepared.reset();
  }
  ops::CustomOutputs said;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    graph::Operand operand = *call.outputs[i].operand;
    if (i < static_cast<size_t>(kernel.outputs->size)) {
      const std::span<const int32_t> dims =
          dimsOf(tensors_[static_cast<size_t>(kernel.outputs->data[i])]);
      operand.dimensions.assign(dims.begin(), dims.end());
      operand.isRankZeroTensor = dims.empty();
    }
    said.outputs.push_back(std::move(operand));
  }
  return said;
}

Status ProgramGraph::compute(size_t node, const ops::CustomCall& call) {
  const std::lock_guard lock(mutex_);
  Node& kernel = nodes_[node];
  HEARTH_TRY(setInputs(kernel, call));
  const bool isPrepared = kernel.prepared && std::ranges::equal(*kernel.prepared, call.inputs, {},
                                                                {}, &ops::Tensor::dimensions);
  if (!isPrepared) HEARTH_TRY(prepare(&kernel, call));
  std::vector<std::vector<uint8_t>> none;
  HEARTH_TRY(bindInputs(kernel, call, true, &none));
  const auto hasShape = [&](const TfLiteTensor& tensor, size_t i) {
    return std::ranges::equal(dimsOf(tensor), call.outputs[i].dimensions, {}, {},
                              [](uint32_t dim) { return static_cast<int32_t>(dim); });
  };
  for (size_t i = 0; i < static_cast<size_t>(kernel.outputs->size); ++i) {
    TfLiteTensor& output = tensors_[static_cast<size_t>(kernel.outputs->data[i])];
    if (output.allocation_type == kTfLiteDynamic) continue;
    if (!hasShape(output, i))
      return fail(ErrorCode::kOpFailed, "Its prepare gives an output another shape than before.");
    output.data = call.outputs[i].data;
  }
  HEARTH_TRY(invoke(kernel));
  for (size_t i = 0; i < static_cast<size_t>(kernel.outputs->size); ++i) {
    TfLiteTensor& output = tensors_[static_cast<size_t>(kernel.outputs->data[i])];
    if (output.allocation_type != kTfLiteDynamic) continue;
    if (!hasShape(output, i) || (output.data == nullptr && output.bytes != 0))
      return fail(ErrorCode::kOpFailed, "It gives output {} another size than before.", i);
    if (output.bytes != 0) std::memcpy(call.outputs[i].data, output.data, output.bytes);
  }
  return {};
}

}  // namespace hearth::tflite_c
