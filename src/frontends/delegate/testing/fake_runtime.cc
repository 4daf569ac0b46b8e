// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/testing/fake_runtime.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace hearth::delegate {
namespace {

constexpr size_t kAlignment = 64;

size_t elementSize(TfLiteType type) {
  switch (type) {
    case kTfLiteInt8:
    case kTfLiteUInt8:
    case kTfLiteBool:
      return 1;
    case kTfLiteInt16:
    case kTfLiteFloat16:
      return 2;
    case kTfLiteInt64:
      return 8;
    default:
      return 4;
  }
}

std::vector<int32_t> listOf(const TfLiteIntArray* array) {
  return {array->data, array->data + array->size};
}

}  // namespace

void FakeRuntime::Free::operator()(void* memory) const {
  std::free(memory);
}

FakeRuntime::FakeRuntime() {
  context_.impl_ = this;
  context_.recommended_num_threads = 1;
  context_.GetExecutionPlan = [](TfLiteContext* context, TfLiteIntArray** plan) {
    FakeRuntime& runtime = of(context);
    runtime.planArray_ = makeArray(runtime.plan_);
    *plan = runtime.planArray_.get();
    return kTfLiteOk;
  };
  context_.GetNodeAndRegistration = [](TfLiteContext* context, int32_t index, TfLiteNode** node,
                                       TfLiteRegistration** registration) {
    FakeRuntime& runtime = of(context);
    *node = &runtime.nodes_[index].node;
    *registration = &runtime.nodes_[index].registration;
    return kTfLiteOk;
  };
  context_.ReportError = reportError;
  context_.ResizeTensor = [](TfLiteContext* context, TfLiteTensor* tensor,
                             TfLiteIntArray* dimensions) {
    FakeRuntime& runtime = of(context);
    runtime.arrays_.emplace_back(dimensions);
    tensor->dims = dimensions;
    runtime.updateBytes(static_cast<int32_t>(tensor - context->tensors));
    return kTfLiteOk;
  };
  context_.PreviewDelegatePartitioning = [](TfLiteContext* context, const TfLiteIntArray* nodes,
                                            TfLiteDelegateParams** partitions, int32_t* count) {
    FakeRuntime& runtime = of(context);
    if (runtime.refusesToPartition) return kTfLiteError;
    runtime.previewed_ = runtime.partition(nodes);
    *partitions = runtime.previewed_.data();
    *count = static_cast<int32_t>(runtime.previewed_.size());
    return kTfLiteOk;
  };
  context_.ReplaceNodeSubsetsWithDelegateKernels =
      [](TfLiteContext* context, TfLiteRegistration registration, const TfLiteIntArray* nodes,
         TfLiteDelegate* delegate) {
        of(context).replace(registration, nodes, delegate);
        return kTfLiteOk;
      };
}

FakeRuntime::~FakeRuntime() {
  for (Node& node : nodes_)
    if (!node.replaced.empty()) node.registration.free(&context_, node.node.user_data);
  for (TfLiteTensor& tensor : tensors_)
    if (tensor.allocation_type != kTfLiteMmapRo) std::free(tensor.data);
}

void FakeRuntime::reportError(TfLiteContext* context, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  of(context).lastError_ = text;
}

FakeRuntime& FakeRuntime::of(TfLiteContext* context) {
  return *static_cast<FakeRuntime*>(context->impl_);
}

FakeRuntime::Array FakeRuntime::makeArray(const std::vector<int32_t>& numbers) {
  auto* const array = static_cast<TfLiteIntArray*>(
      std::malloc(sizeof(TfLiteIntArray) + numbers.size() * sizeof(int32_t)));
  array->size = static_cast<int32_t>(numbers.size());
  std::ranges::copy(numbers, array->data);
  return Array(array);
}

TfLiteIntArray* FakeRuntime::keep(const std::vector<int32_t>& numbers) {
  arrays_.push_back(makeArray(numbers));
  return arrays_.back().get();
}

int32_t FakeRuntime::addTensorOf(TfLiteType type, const std::vector<int32_t>& dimensions,
                                 TfLiteAllocationType allocation) {
  TfLiteTensor tensor{};
  tensor.type = type;
  tensor.name = "tensor";
  tensor.dims = keep(dimensions);
  tensor.allocation_type = allocation;
  tensors_.push_back(tensor);
  context_.tensors = tensors_.data();
  context_.tensors_size = tensors_.size();
  const auto index = static_cast<int32_t>(tensors_.size()) - 1;
  updateBytes(index);
  return index;
}

void FakeRuntime::updateBytes(int32_t index) {
  TfLiteTensor& tensor = tensors_[index];
  tensor.bytes = elementSize(tensor.type);
  for (const int32_t dimension : listOf(tensor.dims))
    tensor.bytes *= static_cast<size_t>(dimension);
}

int32_t FakeRuntime::addTensor(TfLiteType type, std::vector<int32_t> dimensions) {
  return addTensorOf(type, dimensions, kTfLiteArenaRw);
}

int32_t FakeRuntime::addVariable(TfLiteType type, std::vector<int32_t> dimensions) {
  const int32_t added = addTensorOf(type, dimensions, kTfLiteArenaRwPersistent);
  tensors_[added].is_variable = true;
  return added;
}

int32_t FakeRuntime::addConstant(TfLiteType type, std::vector<int32_t> dimensions, const void* data,
                                 size_t bytes) {
  const int32_t added = addTensorOf(type, dimensions, kTfLiteMmapRo);
  tensors_[added].data = const_cast<void*>(data);
  tensors_[added].bytes = bytes;
  return added;
}

void FakeRuntime::quantize(int32_t tensor, std::vector<float> scales,
                           std::vector<int32_t> zeroPoints, int32_t dimension) {
  auto* const list = static_cast<TfLiteFloatArray*>(
      std::malloc(sizeof(TfLiteFloatArray) + scales.size() * sizeof(float)));
  list->size = static_cast<int32_t>(scales.size());
  std::ranges::copy(scales, list->data);
  floats_.emplace_back(list);
  quantizations_.push_back({list, keep(zeroPoints), dimension});
  tensors_[tensor].quantization = {kTfLiteAffineQuantization, &quantizations_.back()};
}

void FakeRuntime::setSignature(int32_t tensor, const std::vector<int32_t>& dimensions) {
  tensors_[tensor].dims_signature = keep(dimensions);
}

int32_t FakeRuntime::addAnyNode(TfLiteRegistration registration, const std::vector<int32_t>& inputs,
                                const std::vector<int32_t>& outputs) {
  Node added;
  added.node.inputs = keep(inputs);
  added.node.outputs = keep(outputs);
  added.node.intermediates = keep({});
  added.node.temporaries = keep({});
  added.registration = registration;
  nodes_.push_back(std::move(added));
  plan_.push_back(static_cast<int32_t>(nodes_.size()) - 1);
  return plan_.back();
}

int32_t FakeRuntime::addNode(tflite::schema::BuiltinOperator code, std::vector<int32_t> inputs,
                             std::vector<int32_t> outputs, void* params, int32_t version) {
  TfLiteRegistration registration{};
  registration.builtin_code = static_cast<int32_t>(code);
  registration.version = version;
  const int32_t added = addAnyNode(registration, inputs, outputs);
  nodes_[added].node.builtin_data = params;
  return added;
}

int32_t FakeRuntime::addCustomNode(const char* name, std::vector<int32_t> inputs,
                                   std::vector<int32_t> outputs) {
  TfLiteRegistration registration{};
  registration.builtin_code = static_cast<int32_t>(tflite::schema::BuiltinOperator::CUSTOM);
  registration.custom_name = name;
  registration.version = 1;
  return addAnyNode(registration, inputs, outputs);
}

std::vector<TfLiteDelegateParams> FakeRuntime::partition(const TfLiteIntArray* list) {
  const std::vector<int32_t> wanted = listOf(list);
  std::vector<std::vector<int32_t>> runs;
  bool isOpen = false;
  for (const int32_t index : plan_) {
    const bool isWanted = std::ranges::find(wanted, index) != wanted.end();
    if (isWanted && !isOpen) runs.emplace_back();
    if (isWanted) runs.back().push_back(index);
    isOpen = isWanted;
  }
  std::vector<TfLiteDelegateParams> partitions;
  for (const std::vector<int32_t>& run : runs) {
    std::set<int32_t> read;
    std::set<int32_t> written;
    for (const int32_t index : run) {
      for (const int32_t tensor : listOf(nodes_[index].node.inputs))
        if (tensor >= 0) read.insert(tensor);
      for (const int32_t tensor : listOf(nodes_[index].node.outputs)) written.insert(tensor);
    }
    std::vector<int32_t> inputs;
    std::ranges::set_difference(read, written, std::back_inserter(inputs));
    std::vector<int32_t> outputs;
    for (const int32_t tensor : written) {
      bool isUsed = outputs_.contains(tensor);
      for (const int32_t other : plan_) {
        const auto readThere = listOf(nodes_[other].node.inputs);
        isUsed |= std::ranges::find(run, other) == run.end() &&
                  std::ranges::find(readThere, tensor) != readThere.end();
      }
      if (isUsed) outputs.push_back(tensor);
    }
    partitions.push_back({nullptr, keep(run), keep(inputs), keep(outputs)});
  }
  return partitions;
}

void FakeRuntime::replace(const TfLiteRegistration& registration, const TfLiteIntArray* nodes,
                          TfLiteDelegate* delegate) {
  std::vector<int32_t> plan;
  std::vector<TfLiteDelegateParams> partitions = partition(nodes);
  const std::vector<int32_t> before = plan_;
  for (const int32_t index : before) {
    const auto found = std::ranges::find_if(partitions, [&](const TfLiteDelegateParams& params) {
      return std::ranges::contains(listOf(params.nodes_to_replace), index);
    });
    if (found == partitions.end()) {
      plan.push_back(index);
      continue;
    }
    if (found->nodes_to_replace->data[0] != index) continue;
    found->delegate = delegate;
    params_.push_back(*found);
    const int32_t added =
        addAnyNode(registration, listOf(found->input_tensors), listOf(found->output_tensors));
    Node& node = nodes_[added];
    node.replaced = listOf(found->nodes_to_replace);
    node.node.delegate = delegate;
    node.node.builtin_data = &params_.back();
    node.node.user_data =
        registration.init(&context_, reinterpret_cast<const char*>(&params_.back()), 0);
    plan.push_back(added);
  }
  plan_ = std::move(plan);
}

TfLiteStatus FakeRuntime::apply(TfLiteDelegate* delegate) {
  return delegate->Prepare(&context_, delegate);
}

TfLiteStatus FakeRuntime::allocate() {
  for (const int32_t index : plan_) {
    Node& node = nodes_[index];
    if (node.replaced.empty()) continue;
    if (const TfLiteStatus status = node.registration.prepare(&context_, &node.node);
        status != kTfLiteOk)
      return status;
  }
  for (TfLiteTensor& tensor : tensors_) {
    if (tensor.allocation_type == kTfLiteMmapRo) continue;
    std::free(tensor.data);
    const size_t size = (tensor.bytes + 2 * kAlignment - 1) / kAlignment * kAlignment;
    tensor.data = std::aligned_alloc(kAlignment, size);
    std::memset(tensor.data, 0, size);
  }
  return kTfLiteOk;
}

TfLiteStatus FakeRuntime::invoke() {
  for (const int32_t index : plan_) {
    Node& node = nodes_[index];
    if (node.replaced.empty()) continue;
    if (const TfLiteStatus status = node.registration.invoke(&context_, &node.node);
        status != kTfLiteOk)
      return status;
  }
  return kTfLiteOk;
}

void FakeRuntime::resize(int32_t tensor, std::vector<int32_t> dimensions) {
  tensors_[tensor].dims = keep(dimensions);
  updateBytes(tensor);
}

std::vector<std::vector<int32_t>> FakeRuntime::partitions() const {
  std::vector<std::vector<int32_t>> taken;
  for (const Node& node : nodes_)
    if (!node.replaced.empty()) taken.push_back(node.replaced);
  return taken;
}

std::vector<int32_t> FakeRuntime::dimensions(int32_t tensor) const {
  return listOf(tensors_[tensor].dims);
}

}  // namespace hearth::delegate
