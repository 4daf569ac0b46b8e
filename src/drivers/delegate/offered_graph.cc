// SPDX-License-Identifier: Apache-2.0
#include "drivers/delegate/offered_graph.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <set>
#include <utility>

#include "base/caught.h"
#include "memory/sigbus_order.h"

namespace hearth::drivers::delegate {
namespace {

std::unique_ptr<TfLiteFloatArray, tflite_abi::FreeMemory> makeFloatArray(
    std::span<const float> values) {
  auto* const array =
      static_cast<TfLiteFloatArray*>(std::malloc(sizeof(TfLiteFloatArray) + values.size_bytes()));
  if (array == nullptr) throw std::bad_alloc();
  array->size = static_cast<int32_t>(values.size());
  std::ranges::copy(values, array->data);
  return std::unique_ptr<TfLiteFloatArray, tflite_abi::FreeMemory>(array);
}

}  // namespace

OfferedGraph::OfferedGraph(WrittenGraph written, int32_t threads)
    : DelegatedGraph(results_), written_(std::move(written)) {
  context_.recommended_num_threads = threads;
}

OfferedGraph::~OfferedGraph() {
  endKernels();
}

Result<std::unique_ptr<OfferedGraph>> OfferedGraph::create(WrittenGraph written,
                                                           VendorLibrary& library,
                                                           const DelegateOptions& options,
                                                           int32_t threads) {
  std::unique_ptr<OfferedGraph> made(new OfferedGraph(std::move(written), threads));
  made->fill();
  if (made->plan_.empty()) return made;
  HEARTH_ASSIGN(made->delegate_, library.makeDelegate(options));
  HEARTH_TRY(made->apply(made->delegate_.get(), false, [] { return Status(); }));
  memory::putSigbusGuardFirst();
  return made;
}

void OfferedGraph::fill() {
  std::vector<TfLiteTensor> tensors;
  std::vector<tflite_abi::IntArray> dims;
  for (const WrittenTensor& source : written_.tensors) {
    TfLiteTensor& made = tensors.emplace_back();
    dims.emplace_back(tflite_abi::makeIntArray(source.dims));
    made.type = source.type;
    made.bytes = source.bytes;
    made.name = source.name.c_str();
    made.buffer_handle = -1;
    made.is_variable = source.isVariable;
    made.allocation_type = source.data != nullptr ? kTfLiteMmapRo
                           : source.isVariable    ? kTfLiteArenaRwPersistent
                                                  : kTfLiteArenaRw;
    made.data = const_cast<uint8_t*>(source.data);  // the interface has no pointer to const
    if (source.scales.empty()) continue;
    Quantization& quantization = quantizations_.emplace_back();
    quantization.scales = makeFloatArray(source.scales);
    quantization.zeroPoints.reset(tflite_abi::makeIntArray(source.zeroPoints));
    quantization.affine = {quantization.scales.get(), quantization.zeroPoints.get(),
                           source.channelDimension};
    made.quantization = {kTfLiteAffineQuantization, &quantization.affine};
    if (source.scales.size() > 1) continue;
    made.legacy_scale = source.scales.front();
    made.legacy_zero_point = source.zeroPoints.front();
  }
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].dims = dims[i].release();
  setTensors(std::move(tensors));
  std::set<int32_t> made, read;
  for (const WrittenNode& source : written_.nodes) {
    Node& node = addNode(source.operation, source.inputs, source.outputs, source.intermediates);
    // Structures of parameters have grown; those who know longer ones read zeros behind.
    constexpr size_t kMostParameters = 128;
    node.registration.isCustom = source.code == tflite_abi::Builtin::kCustom;
    if (node.registration.isCustom) {
      node.registration.customName = source.customName;
      node.node.custom_initial_data = source.customOptions.data();
      node.node.custom_initial_data_size = static_cast<int32_t>(source.customOptions.size());
    } else {
      void* const parameters = std::calloc(1, source.parameters.size() + kMostParameters);
      if (parameters == nullptr) throw std::bad_alloc();
      node.parameters.reset(parameters);
      std::ranges::copy(source.parameters, static_cast<uint8_t*>(parameters));
      node.node.builtin_data = parameters;
    }
    node.registration.builtinCode = static_cast<int32_t>(source.code);
    node.registration.version = source.version;
    showStructure(&node.registration);
    read.insert(source.inputs.begin(), source.inputs.end());
    made.insert(source.outputs.begin(), source.outputs.end());
  }
  for (const int32_t input : written_.inputs)
    if (input >= 0 && !written_.isVariable(input)) inputs_.push_back(input);
  for (const int32_t output : written_.outputs)
    if (output >= 0 && !written_.isVariable(output)) results_.push_back(output);
  // What operations read that TensorFlow Lite cannot express is needed outside, too.
  const graph::Subgraph& main = written_.model->main();
  for (size_t i = 0; i < main.operations.size(); ++i) {
    if (written_.refusals[i].empty()) continue;
    for (const uint32_t input : main.operations[i].inputs) {
      const int32_t tensor = written_.ofOperand[input];
      if (tensor >= 0 && made.contains(tensor)) results_.push_back(tensor);
    }
  }
}

std::vector<bool> OfferedGraph::takenOperations() const {
  std::vector<bool> taken;
  for (const std::string& refusal : written_.refusals) taken.push_back(refusal.empty());
  // A node in the plan was left to others.
  for (const int32_t index : plan_) {
    const Node& node = nodes_[static_cast<size_t>(index)];
    if (node.operation) taken[*node.operation] = false;
  }
  return taken;
}

std::vector<bool> OfferedGraph::constantOperations() const {
  std::vector<bool> constant;
  for (const std::string& refusal : written_.refusals) constant.push_back(refusal.empty());
  for (const WrittenNode& node : written_.nodes) constant[node.operation] = false;
  return constant;
}

Status OfferedGraph::placeTensors() {
  const auto place = [&](int32_t index) -> Status {
    if (index < 0 || static_cast<size_t>(index) >= written_.tensors.size()) return {};
    TfLiteTensor& tensor = tensors_[static_cast<size_t>(index)];
    if (tensor.allocation_type != kTfLiteArenaRw && !tensor.is_variable) return {};
    tflite_abi::TensorMemory& memory = memory_[index];
    if (memory.data() == nullptr) {
      HEARTH_ASSIGN(memory, tflite_abi::TensorMemory::allocate(tensor.bytes));
      memory.guard();
      activationBytes_ += tensor.bytes;
    }
    tensor.data = memory.data();
    return {};
  };
  for (const std::vector<int32_t>* const list : {&written_.inputs, &inputs_, &results_})
    for (const int32_t tensor : *list) HEARTH_TRY(place(tensor));
  for (const int32_t index : plan_) {
    const Node& node = nodes_[static_cast<size_t>(index)];
    for (const TfLiteIntArray* const list : {node.inputs.get(), node.outputs.get()})
      for (int32_t i = 0; i < list->size; ++i) HEARTH_TRY(place(list->data[i]));
  }
  return {};
}

Status OfferedGraph::checkShapes() const {
  for (size_t i = 0; i < written_.tensors.size(); ++i)
    if (tensors_[i].allocation_type != kTfLiteDynamic &&
        !std::ranges::equal(tflite_abi::dimsOf(tensors_[i]), written_.tensors[i].dims))
      return fail(ErrorCode::kOpFailed,
                  "The delegate gives the tensor {} another shape than the model has.", i);
  return {};
}

Status OfferedGraph::prepare() {
  const std::vector<bool> taken = takenOperations();
  const auto left = std::ranges::find(taken, false);
  if (left != taken.end()) {
    const auto index = static_cast<size_t>(left - taken.begin());
    const std::string& refusal = written_.refusals[index];
    return fail(ErrorCode::kUnsupported, "The delegate does not take {}. {}",
                graph::nameOf(written_.model->main().operations[index].type), refusal);
  }
  for (const int32_t output : written_.outputs)
    if (output < 0)
      return fail(ErrorCode::kUnsupported, "An output of the model is not computed by a node.");
  HEARTH_TRY(placeTensors());
  for (const int32_t index : plan_) HEARTH_TRY(prepareKernel(&nodes_[static_cast<size_t>(index)]));
  HEARTH_TRY(checkShapes());
  // prepareKernel() takes the memory of outputs away, as a new preparation does.
  HEARTH_TRY(placeTensors());
  HEARTH_TRY(run());
  memory::putSigbusGuardFirst();
  return {};
}

Status OfferedGraph::run() {
  for (const int32_t index : plan_) HEARTH_TRY(invokeKernel(nodes_[static_cast<size_t>(index)]));
  for (const auto& [tensor, memory] : memory_)
    if (!memory.isWithin())
      return fail(ErrorCode::kOpFailed,
                  "The delegate writes before the begin or behind the end of the tensor {}.",
                  tensor);
  return checkShapes();
}

Status OfferedGraph::compute(std::span<const void* const> inputs, std::span<void* const> outputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int32_t tensor = written_.inputs[i];
    if (tensor < 0 || bytesOf(tensor) == 0) continue;
    std::memcpy(memory_.at(tensor).data(), inputs[i], bytesOf(tensor));
  }
  HEARTH_TRY(run());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TfLiteTensor& tensor = tensors_[static_cast<size_t>(written_.outputs[i])];
    const uint64_t bytes = outputBytes(i);
    if (outputs[i] == nullptr || bytes == 0) continue;
    if (tensor.data == nullptr || tensor.bytes < bytes)
      return fail(ErrorCode::kOpFailed, "The delegate gives output {} no value.", i);
    std::memcpy(outputs[i], tensor.data, bytes);
  }
  return {};
}

}  // namespace hearth::drivers::delegate
