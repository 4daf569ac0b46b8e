// SPDX-License-Identifier: Apache-2.0
#include "tflite_abi/delegated_graph.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>

#include "base/caught.h"

namespace hearth::tflite_abi {
namespace {

constexpr int32_t kDelegateCode = 51;

// The structure of an opaque delegate's parameters, which its kernels get.
struct OpaqueDelegateParams {
  TfLiteDelegate* delegate;
  void* data;
  TfLiteIntArray* nodes;
  TfLiteIntArray* inputs;
  TfLiteIntArray* outputs;
};

template <typename Params>
std::unique_ptr<void, FreeMemory> copied(const Params& params) {
  std::unique_ptr<void, FreeMemory> memory(std::malloc(sizeof params));
  if (memory == nullptr) throw std::bad_alloc();
  new (memory.get()) Params(params);
  return memory;
}

const TfLiteOpaqueDelegateBuilder* builderOf(const TfLiteDelegate& delegate) {
  // Structures that are older than the field have the function.
  if (delegate.Prepare != nullptr) return nullptr;
  return static_cast<const TfLiteOpaqueDelegateBuilder*>(delegate.opaque_delegate_builder);
}

}  // namespace

DelegatedGraph::Partition::Partition(const NodeSubset& subset)
    : nodes(makeIntArray(subset.nodes)),
      inputs(makeIntArray(subset.inputs)),
      outputs(makeIntArray(subset.outputs)) {}

DelegatedGraph::~DelegatedGraph() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (i >= ownTensors_) {
      freeTensor(&tensors_[i]);
      continue;
    }
    if (tensors_[i].allocation_type == kTfLiteDynamic) std::free(tensors_[i].data);
    std::free(tensors_[i].dims);
  }
}

void DelegatedGraph::setTensors(std::vector<TfLiteTensor> tensors) {
  // Room for the temporaries of some kernels, so that tensors mostly stay where they are.
  constexpr size_t kRoom = 128;
  tensors_ = std::move(tensors);
  ownTensors_ = tensors_.size();
  tensors_.reserve(ownTensors_ + kRoom);
  context_.tensors = tensors_.data();
  context_.tensors_size = tensors_.size();
}

DelegatedGraph::Node& DelegatedGraph::addNode(size_t operation, std::span<const int32_t> inputs,
                                              std::span<const int32_t> outputs,
                                              std::span<const int32_t> intermediates) {
  Node& made = nodes_.emplace_back();
  made.operation = operation;
  made.inputs.reset(makeIntArray(inputs));
  made.outputs.reset(makeIntArray(outputs));
  made.intermediates.reset(makeIntArray(intermediates));
  made.node.inputs = made.inputs.get();
  made.node.outputs = made.outputs.get();
  made.node.intermediates = made.intermediates.get();
  made.node.temporaries = makeIntArray({});
  plan_.push_back(static_cast<int32_t>(nodes_.size() - 1));
  return made;
}

void DelegatedGraph::showStructure(TfLiteOperator* registration) {
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

bool DelegatedGraph::isVariable(int32_t tensor) const {
  return tensor >= 0 && tensors_[static_cast<size_t>(tensor)].is_variable;
}

Status DelegatedGraph::apply(TfLiteDelegate* delegate, bool hasDynamicTensors,
                             const std::function<Status()>& accept) {
  const TfLiteOpaqueDelegateBuilder* const builder = builderOf(*delegate);
  if (delegate->Prepare == nullptr && (builder == nullptr || builder->Prepare == nullptr))
    return fail(ErrorCode::kUnexpectedNull, "The delegate has no Prepare.");
  if (hasDynamicTensors && !allowsDynamicTensors(*delegate))
    return fail(ErrorCode::kUnsupported,
                "The delegate takes graphs with static sizes only, and this one has tensors whose "
                "sizes depend on values.");
  Change change(this);
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
  if (!applied)
    return std::unexpected(std::move(applied.error()).addContext("while applying a delegate"));
  change.keep();
  return {};
}

DelegatedGraph::Change::Change(DelegatedGraph* graph)
    : graph_(graph), plan_(graph->plan_), nodes_(graph->nodes_.size()) {}

DelegatedGraph::Change::~Change() {
  if (graph_ == nullptr) return;
  graph_->plan_ = plan_;
  graph_->removeNodes(nodes_);
}

void DelegatedGraph::removeNodes(size_t first) {
  while (nodes_.size() > first) {
    giveUpOutputs(nodes_.back());
    free(&nodes_.back());
    nodes_.pop_back();
  }
}

bool DelegatedGraph::allowsDynamicTensors(const TfLiteDelegate& delegate) {
  const TfLiteOpaqueDelegateBuilder* const builder = builderOf(delegate);
  const int64_t flags = builder == nullptr ? delegate.flags : builder->flags;
  return (flags & kTfLiteDelegateFlagsAllowDynamicTensors) != 0;
}

bool DelegatedGraph::hasDelegates() const {
  return !nodes_.empty() && !nodes_.back().operation;
}

void DelegatedGraph::removeKernels() {
  while (hasDelegates()) removeNodes(nodes_.size() - 1);
  plan_.resize(nodes_.size());
  std::ranges::iota(plan_, 0);
  for (TfLiteTensor& tensor : tensors_) {
    freeBufferHandle(&tensor);
    tensor.delegate = nullptr;
  }
}

TfLiteStatus DelegatedGraph::plan(TfLiteIntArray** plan) {
  if (plan == nullptr) return kTfLiteError;
  *plan = nullptr;
  const Status made = base::caught([&] { planArray_.reset(makeIntArray(plan_)); });
  if (!made) return kTfLiteError;
  *plan = planArray_.get();
  return kTfLiteOk;
}

TfLiteStatus DelegatedGraph::node(int32_t index, TfLiteNode** node, TfLiteOperator** registration) {
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

std::vector<PlannedNode> DelegatedGraph::plannedNodes() const {
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

std::optional<std::set<int32_t>> DelegatedGraph::nodesOf(const TfLiteIntArray* list) {
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

TfLiteStatus DelegatedGraph::preview(const TfLiteIntArray* nodes, TfLiteDelegateParams** partitions,
                                     int32_t* count) {
  if (partitions == nullptr || count == nullptr) return kTfLiteError;
  *partitions = nullptr;
  *count = 0;
  const Status made = base::caught([&]() -> Status {
    previewed_.clear();
    previewParams_.clear();
    const auto taken = nodesOf(nodes);
    if (!taken) return fail(ErrorCode::kBadData, "The list of nodes is wrong.");
    for (const NodeSubset& subset : partitionNodes(plannedNodes(), *taken, results_)) {
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

TfLiteStatus DelegatedGraph::replace(const TfLiteOperator& registration,
                                     const TfLiteIntArray* nodes, TfLiteDelegate* delegate) {
  if (!isApplying() || delegate == nullptr) {
    context_.ReportError(&context_, "Nodes can be replaced during a delegate's Prepare only.");
    return kTfLiteError;
  }
  const auto taken = nodesOf(nodes);
  if (!taken) return kTfLiteError;
  std::vector<int32_t> planned;
  for (const NodeSubset& subset : partitionNodes(plannedNodes(), *taken, results_)) {
    if (subset.isTaken)
      planned.push_back(addKernel(registration, subset, delegate));
    else
      planned.insert(planned.end(), subset.nodes.begin(), subset.nodes.end());
  }
  plan_ = std::move(planned);
  return kTfLiteOk;
}

int32_t DelegatedGraph::addKernel(const TfLiteOperator& registration, const NodeSubset& subset,
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
  beforeInit(&made, nodes_.size() - 1);
  const TfLiteDelegateParams params = made.partition->params(delegate);
  const TfLiteOpaqueDelegateBuilder* const builder = builderOf(*delegate);
  // Kernels may keep the pointer, and look for the same structure in their node.
  if (builder == nullptr)
    made.parameters = copied(params);
  else
    made.parameters = copied(OpaqueDelegateParams{delegate, builder->data, params.nodes_to_replace,
                                                  params.input_tensors, params.output_tensors});
  made.node.builtin_data = made.parameters.get();
  for (const int32_t output : subset.outputs)
    tensors_[static_cast<size_t>(output)].delegate = delegate;
  made.isOpen = true;
  made.node.user_data =
      made.registration.callInit(&context_, static_cast<const char*>(made.parameters.get()), 0);
  return static_cast<int32_t>(nodes_.size() - 1);
}

TfLiteStatus DelegatedGraph::addTensors(int32_t count, int32_t* first) {
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

TfLiteStatus DelegatedGraph::resize(TfLiteTensor* tensor, TfLiteIntArray* dims) {
  const bool isOwn = tensor >= tensors_.data() && tensor < tensors_.data() + tensors_.size();
  if (!isOwn || dims == nullptr || dims->size < 0 || tensor->allocation_type == kTfLiteMmapRo) {
    if (!isOwn || dims != tensor->dims) std::free(dims);
    return kTfLiteError;
  }
  return resizeTensor(dims, tensor);
}

void DelegatedGraph::free(Node* kernel) {
  if (!std::exchange(kernel->isOpen, false)) return;
  beforeFree(kernel);
  base::logged("A delegate's free",
               [&] { kernel->registration.callFree(&context_, kernel->node.user_data); });
}

void DelegatedGraph::endKernels() {
  for (Node& node : nodes_) free(&node);
  for (TfLiteTensor& tensor : tensors_) freeBufferHandle(&tensor);
}

void DelegatedGraph::freeBufferHandle(TfLiteTensor* tensor) {
  TfLiteDelegate* const delegate = tensor->delegate;
  int32_t handle = std::exchange(tensor->buffer_handle, -1);
  if (delegate == nullptr || handle < 0) return;
  const TfLiteOpaqueDelegateBuilder* const builder = builderOf(*delegate);
  base::logged("A delegate's FreeBufferHandle", [&] {
    if (builder != nullptr && builder->FreeBufferHandle != nullptr)
      builder->FreeBufferHandle(&context_, delegate, builder->data, &handle);
    else if (builder == nullptr && delegate->FreeBufferHandle != nullptr)
      delegate->FreeBufferHandle(&context_, delegate, &handle);
  });
}

void DelegatedGraph::giveUpOutputs(const Node& kernel) {
  for (int32_t i = 0; i < kernel.outputs->size; ++i) {
    TfLiteTensor& output = tensors_[static_cast<size_t>(kernel.outputs->data[i])];
    freeBufferHandle(&output);
    output.delegate = nullptr;
    output.data_is_stale = false;
  }
}

TfLiteDelegate* DelegatedGraph::delegateOf(size_t tensor) const {
  return tensor < tensors_.size() ? tensors_[tensor].delegate : nullptr;
}

Status DelegatedGraph::setBufferHandle(size_t tensor, int32_t handle, TfLiteDelegate* delegate) {
  if (tensor >= tensors_.size())
    return fail(ErrorCode::kNotFound, "There is no tensor {}; the graph has {}.", tensor,
                tensors_.size());
  TfLiteTensor& found = tensors_[tensor];
  if (found.delegate != nullptr && found.delegate != delegate)
    return fail(ErrorCode::kBadState,
                "Another delegate computes tensor {}, or has given it a buffer.", tensor);
  if (found.buffer_handle != handle) freeBufferHandle(&found);
  found.delegate = delegate;
  found.buffer_handle = handle;
  return {};
}

Status DelegatedGraph::kernelStatus(const Node& kernel, const char* what,
                                    const Result<TfLiteStatus>& status) {
  Status made = programStatus(what, status, takeMessage());
  if (made || !kernel.registration.isCustom) return made;
  return std::unexpected(
      std::move(made.error()).addContext("in \"" + kernel.registration.customName + "\""));
}

Status DelegatedGraph::prepareKernel(Node* kernel) {
  kernel->prepared.reset();
  for (int32_t i = 0; i < kernel->outputs->size; ++i) {
    TfLiteTensor& output = tensors_[static_cast<size_t>(kernel->outputs->data[i])];
    if (output.allocation_type == kTfLiteDynamic) std::free(output.data);
    output.data = nullptr;
    output.allocation_type = output.type == kTfLiteString ? kTfLiteDynamic : kTfLiteArenaRw;
    // The last run may have left another number of bytes than the dimensions say.
    const Result<uint64_t> bytes = tensorBytes(output.type, dimsOf(output));
    output.bytes = bytes ? *bytes : 0;
  }
  const Result<TfLiteStatus> status = base::caught([&]() -> Result<TfLiteStatus> {
    return kernel->registration.callPrepare(&context_, &kernel->node);
  });
  HEARTH_TRY(kernelStatus(*kernel, "prepare", status));
  return placeTemporaries(*kernel);
}

Status DelegatedGraph::placeTemporaries(const Node& kernel) {
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

Status DelegatedGraph::invokeKernel(const Node& kernel) {
  const Result<TfLiteStatus> status = base::caught([&]() -> Result<TfLiteStatus> {
    return kernel.registration.callInvoke(&context_, const_cast<TfLiteNode*>(&kernel.node));
  });
  HEARTH_TRY(kernelStatus(kernel, "invoke", status));
  if (kernel.node.delegate == nullptr) return {};
  for (int32_t i = 0; i < kernel.outputs->size; ++i) {
    const int32_t index = kernel.outputs->data[i];
    TfLiteTensor& output = tensors_[static_cast<size_t>(index)];
    const bool liesElsewhere = output.data_is_stale && output.delegate == kernel.node.delegate &&
                               output.buffer_handle >= 0;
    if (liesElsewhere && !mayStayStale(kernel, index)) HEARTH_TRY(copyFromBuffer(&output));
  }
  return {};
}

// An output of the graph that no other node reads.
bool DelegatedGraph::mayStayStale(const Node& kernel, int32_t output) const {
  if (!allowsStaleResults_ || !std::ranges::contains(results_, output)) return false;
  return std::ranges::none_of(plan_, [&](int32_t index) {
    const Node& node = nodes_[static_cast<size_t>(index)];
    const std::span<const int32_t> inputs(node.inputs->data,
                                          static_cast<size_t>(node.inputs->size));
    return &node != &kernel && std::ranges::contains(inputs, output);
  });
}

Status DelegatedGraph::copyFromBuffer(TfLiteTensor* tensor) {
  TfLiteDelegate* const delegate = tensor->delegate;
  if (delegate == nullptr || tensor->buffer_handle < 0)
    return fail(ErrorCode::kBadState, "The tensor \"{}\" does not lie in a buffer of a delegate.",
                tensor->name == nullptr ? "" : tensor->name);
  const TfLiteOpaqueDelegateBuilder* const builder = builderOf(*delegate);
  const Result<TfLiteStatus> copied = base::caught([&]() -> Result<TfLiteStatus> {
    if (builder != nullptr && builder->CopyFromBufferHandle != nullptr)
      return builder->CopyFromBufferHandle(&context_, delegate, builder->data,
                                           tensor->buffer_handle, tensor);
    if (builder == nullptr && delegate->CopyFromBufferHandle != nullptr)
      return delegate->CopyFromBufferHandle(&context_, delegate, tensor->buffer_handle, tensor);
    return kTfLiteError;
  });
  HEARTH_TRY(programStatus("CopyFromBufferHandle", copied, takeMessage()));
  tensor->data_is_stale = false;
  return {};
}

bool DelegatedGraph::hasDynamicOutputs(const Node& kernel) const {
  for (int32_t i = 0; i < kernel.outputs->size; ++i)
    if (tensors_[static_cast<size_t>(kernel.outputs->data[i])].allocation_type == kTfLiteDynamic)
      return true;
  return false;
}

}  // namespace hearth::tflite_abi
