// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/program_operators.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/caught.h"
#include "base/immortal.h"
#include "base/mutex.h"
#include "frontends/tflite/model_file.h"
#include "frontends/tflite_c/tensor_table.h"
#include "ops/custom_operator.h"
#include "tflite_abi/context.h"
#include "tflite_abi/tensor_type.h"

namespace hearth::tflite_c {
namespace {

using graph::OperandType;

TfLiteType typeOf(OperandType type) {
  switch (type) {
    case OperandType::kTensorFloat32:
      return kTfLiteFloat32;
    case OperandType::kTensorFloat16:
      return kTfLiteFloat16;
    case OperandType::kTensorFloat64:
      return kTfLiteFloat64;
    case OperandType::kTensorInt32:
      return kTfLiteInt32;
    case OperandType::kTensorUint32:
      return kTfLiteUInt32;
    case OperandType::kTensorInt64:
      return kTfLiteInt64;
    case OperandType::kTensorUint64:
      return kTfLiteUInt64;
    case OperandType::kTensorQuant8Asymm:
      return kTfLiteUInt8;
    case OperandType::kTensorQuant8AsymmSigned:
    case OperandType::kTensorQuant8Symm:
    case OperandType::kTensorQuant8SymmPerChannel:
      return kTfLiteInt8;
    case OperandType::kTensorInt16:
    case OperandType::kTensorQuant16Symm:
      return kTfLiteInt16;
    case OperandType::kTensorUint16:
      return kTfLiteUInt16;
    case OperandType::kTensorBool8:
      return kTfLiteBool;
    case OperandType::kTensorComplex64:
      return kTfLiteComplex64;
    default:
      return kTfLiteNoType;
  }
}

// Calls of one operator's functions, with a context and a node that hold for this time only.
class Frame final : public tflite_abi::Context {
 public:
  Frame(const ops::CustomCall& call, void* state) {
    for (const ops::Tensor& input : call.inputs) inputs_.push_back(add(input));
    for (const ops::Tensor& output : call.outputs) outputs_.push_back(add(output));
    context_.tensors_size = tensors_.size();
    context_.tensors = tensors_.data();
    node_.inputs = tflite_abi::makeIntArray(inputs_);
    node_.outputs = tflite_abi::makeIntArray(outputs_);
    node_.intermediates = tflite_abi::makeIntArray({});
    node_.temporaries = tflite_abi::makeIntArray({});
    node_.user_data = state;
    node_.custom_initial_data = call.options.data();
    node_.custom_initial_data_size = static_cast<int32_t>(call.options.size());
  }
  ~Frame() {
    for (TfLiteTensor& tensor : tensors_) TfLiteTensorFree(&tensor);
    for (TfLiteIntArray* list :
         {node_.inputs, node_.outputs, node_.intermediates, node_.temporaries})
      std::free(list);
  }
  TfLiteTensor& output(size_t index) { return tensors_[static_cast<size_t>(outputs_[index])]; }
  bool hasOutput(size_t index) const { return outputs_[index] >= 0; }
  // Outputs have no memory before their sizes are settled.
  void forgetOutputs() {
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (hasOutput(i)) output(i).data = nullptr;
  }
  bool hasDynamicOutputs() {
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (hasOutput(i) && output(i).allocation_type == kTfLiteDynamic) return true;
    return false;
  }

  Status prepare(const TfLiteOperator& custom) {
    return run("prepare", [&] { return custom.callPrepare(&context_, &node_); });
  }
  Status invoke(const TfLiteOperator& custom) {
    return run("invoke", [&] { return custom.callInvoke(&context_, &node_); });
  }

  TfLiteStatus resize(TfLiteTensor* tensor, TfLiteIntArray* dims) override {
    const std::unique_ptr<TfLiteIntArray, decltype(&std::free)> holder(dims, &std::free);
    const auto isOutput = [&](int32_t index) {
      return index >= 0 && &tensors_[static_cast<size_t>(index)] == tensor;
    };
    if (tensor == nullptr || dims == nullptr || dims->size < 0 ||
        std::ranges::none_of(outputs_, isOutput))
      return kTfLiteError;
    return tflite_abi::resizeTensor(dims, tensor);
  }

 private:
  // Exceptions of the program are failures of its function.
  template <typename Function>
  Status run(const char* what, Function function) {
    const Result<TfLiteStatus> status =
        base::caught([&]() -> Result<TfLiteStatus> { return function(); });
    return tflite_abi::programStatus(what, status, takeMessage());
  }

  // The index of a tensor; -1 for an omitted one.
  int32_t add(const ops::Tensor& from) {
    if (!from.isPresent) return -1;
    TfLiteTensor tensor{};
    const graph::Operand& operand = *from.operand;
    tensor.type = typeOf(operand.type);
    const std::vector<int32_t> dims(from.dimensions.begin(), from.dimensions.end());
    tensor.dims = tflite_abi::makeIntArray(dims);
    tensor.data = from.data;
    tensor.allocation_type = operand.isConstant() ? kTfLiteMmapRo : kTfLiteArenaRw;
    const Result<uint64_t> bytes = tflite_abi::tensorBytes(tensor.type, dims);
    tensor.bytes = bytes && from.hasKnownShape ? *bytes : 0;
    tensor.name = operand.name.c_str();
    tensor.buffer_handle = -1;
    tensor.legacy_scale = operand.scale;
    tensor.legacy_zero_point = operand.zeroPoint;
    tensors_.push_back(tensor);
    return static_cast<int32_t>(tensors_.size() - 1);
  }

  TfLiteNode node_{};
  std::vector<TfLiteTensor> tensors_;
  std::vector<int32_t> inputs_;
  std::vector<int32_t> outputs_;
};

using Shapes = std::vector<graph::Dimensions>;

Shapes shapesOf(const ops::CustomCall& call) {
  Shapes shapes;
  for (const ops::Tensor& input : call.inputs) shapes.push_back(input.dimensions);
  return shapes;
}

// One operation of a model. The program's functions are not made for several threads at once.
class ProgramNode final : public ops::CustomNode {
 public:
  ProgramNode(std::shared_ptr<const TfLiteOperator> custom, const ops::CustomCall& call)
      : custom_(std::move(custom)) {
    Frame frame({call.options, call.codeVersion, {}, {}}, nullptr);
    const auto* const options = reinterpret_cast<const char*>(call.options.data());
    state_ = custom_->callInit(frame.context(), options, call.options.size());
  }
  ~ProgramNode() override {
    base::logged("An operator's free", [&] {
      Frame frame({}, state_);
      custom_->callFree(frame.context(), state_);
    });
  }
  ProgramNode(const ProgramNode&) = delete;
  ProgramNode& operator=(const ProgramNode&) = delete;

  Result<ops::CustomOutputs> describeOutputs(const ops::CustomCall& call) const override {
    const std::lock_guard lock(mutex_);
    Frame frame(call, state_);
    frame.forgetOutputs();
    prepared_.reset();
    HEARTH_TRY(frame.prepare(*custom_));
    if (frame.hasDynamicOutputs()) {
      const bool knowsAll = std::ranges::all_of(call.inputs, [](const ops::Tensor& input) {
        return !input.isPresent || input.data != nullptr || input.elementCount() == 0;
      });
      if (!knowsAll) return ops::CustomOutputs{true, {}};
      HEARTH_TRY(frame.invoke(*custom_));
    } else {
      prepared_ = shapesOf(call);
    }
    ops::CustomOutputs said;
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      graph::Operand operand = *call.outputs[i].operand;
      if (frame.hasOutput(i)) {
        const std::span<const int32_t> dims = tflite_abi::dimsOf(frame.output(i));
        operand.dimensions.assign(dims.begin(), dims.end());
        operand.isRankZeroTensor = dims.empty();
      }
      said.outputs.push_back(std::move(operand));
    }
    return said;
  }

  Status compute(const ops::CustomCall& call) const override {
    const std::lock_guard lock(mutex_);
    Frame frame(call, state_);
    frame.forgetOutputs();
    if (prepared_ != shapesOf(call)) HEARTH_TRY(frame.prepare(*custom_));
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (!frame.hasOutput(i)) continue;
      HEARTH_TRY(checkSize(frame.output(i), call.outputs[i]));
      if (frame.output(i).allocation_type != kTfLiteDynamic)
        frame.output(i).data = call.outputs[i].data;
    }
    HEARTH_TRY(frame.invoke(*custom_));
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (!frame.hasOutput(i)) continue;
      const TfLiteTensor& output = frame.output(i);
      if (output.allocation_type == kTfLiteDynamic) {
        if (!hasShape(output, call.outputs[i]) || (output.data == nullptr && output.bytes != 0))
          return fail(ErrorCode::kOpFailed, "It gives output {} another size than before.", i);
        if (output.bytes != 0) std::memcpy(call.outputs[i].data, output.data, output.bytes);
      }
    }
    return {};
  }

 private:
  static bool hasShape(const TfLiteTensor& tensor, const ops::Tensor& expected) {
    return std::ranges::equal(tflite_abi::dimsOf(tensor), expected.dimensions, {}, {},
                              [](uint32_t dim) { return static_cast<int32_t>(dim); });
  }
  // An operator that gives other sizes in a run than before would write past the output.
  static Status checkSize(const TfLiteTensor& tensor, const ops::Tensor& expected) {
    if (tensor.allocation_type == kTfLiteDynamic || hasShape(tensor, expected)) return {};
    return fail(ErrorCode::kOpFailed, "Its prepare gives an output another shape than before.");
  }

  const std::shared_ptr<const TfLiteOperator> custom_;
  void* state_ = nullptr;
  mutable std::mutex mutex_;
  // The shapes for which prepare() was called last; none if that has to be repeated.
  mutable std::optional<Shapes> prepared_;
};

// An operation's name in Hearth's table, with the operator that a program gave last.
class NamedOperator final : public ops::CustomOperator {
 public:
  explicit NamedOperator(std::string name) : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  int32_t version() const override { return 1; }
  void set(std::weak_ptr<const TfLiteOperator> custom) const {
    const std::lock_guard lock(mutex_);
    custom_ = std::move(custom);
  }
  Result<std::shared_ptr<const ops::CustomNode>> makeNode(
      const ops::CustomCall& call) const override {
    std::shared_ptr<const TfLiteOperator> custom;
    {
      const std::lock_guard lock(mutex_);
      custom = custom_.lock();
    }
    if (custom == nullptr)
      return fail(ErrorCode::kUnsupported,
                  "No interpreter has an operator \"{}\" any more; add it to the options.", name_);
    return std::make_shared<ProgramNode>(std::move(custom), call);
  }

 private:
  const std::string name_;
  mutable base::Mutex mutex_;
  mutable std::weak_ptr<const TfLiteOperator> custom_;
};

struct Table {
  base::Mutex mutex;
  std::map<std::string, const NamedOperator*> operators;  // of Hearth's table, which keeps them
};

Table& table() {
  static constinit base::Immortal<Table> table;
  return table.get();
}

}  // namespace

Status provideOperator(const std::shared_ptr<const TfLiteOperator>& custom) {
  if (!custom->isCustom || custom->customName.empty())
    return fail(ErrorCode::kBadData, "An operator of the program has no name.");
  if (tflite::isKnownCustomOperation(custom->customName)) return {};
  if (!custom->hasInvoke())
    return fail(ErrorCode::kBadData, "The operator \"{}\" of the program has no invoke.",
                custom->customName);
  Table& known = table();
  const std::lock_guard lock(known.mutex);
  const NamedOperator*& named = known.operators[custom->customName];
  if (named == nullptr) {
    auto made = std::make_unique<NamedOperator>(custom->customName);
    const NamedOperator* const kept = made.get();
    if (ops::findCustomOperator(custom->customName) != nullptr) {
      known.operators.erase(custom->customName);
      return {};
    }
    Status registered = ops::registerCustomOperator(std::move(made));
    if (!registered) {
      known.operators.erase(custom->customName);
      return registered;
    }
    named = kept;
  }
  named->set(custom);
  return {};
}

}  // namespace hearth::tflite_c
