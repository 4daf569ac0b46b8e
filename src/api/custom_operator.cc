// SPDX-License-Identifier: Apache-2.0
// hearth_custom_operator_register, and the way from an operation to the functions of the program.
#include "ops/custom_operator.h"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <string>
#include <utility>

#include "api/handles.h"
#include "base/caught.h"
#include "frontends/tflite/model_file.h"

namespace hearth::api {
namespace {

using graph::OperandType;

// The type in the graph of an output.
Result<OperandType> operandType(int32_t type, bool isQuantized) {
  switch (type) {
    case HEARTH_TYPE_FLOAT32:
      return OperandType::kTensorFloat32;
    case HEARTH_TYPE_FLOAT16:
      return OperandType::kTensorFloat16;
    case HEARTH_TYPE_FLOAT64:
      return OperandType::kTensorFloat64;
    case HEARTH_TYPE_INT8:
      return OperandType::kTensorQuant8AsymmSigned;
    case HEARTH_TYPE_UINT8:
      return OperandType::kTensorQuant8Asymm;
    case HEARTH_TYPE_INT16:
      return isQuantized ? OperandType::kTensorQuant16Symm : OperandType::kTensorInt16;
    case HEARTH_TYPE_UINT16:
      return OperandType::kTensorUint16;
    case HEARTH_TYPE_INT32:
      return OperandType::kTensorInt32;
    case HEARTH_TYPE_UINT32:
      return OperandType::kTensorUint32;
    case HEARTH_TYPE_INT64:
      return OperandType::kTensorInt64;
    case HEARTH_TYPE_UINT64:
      return OperandType::kTensorUint64;
    case HEARTH_TYPE_BOOL:
      return OperandType::kTensorBool8;
    case HEARTH_TYPE_COMPLEX64:
      return OperandType::kTensorComplex64;
    default:
      return fail(ErrorCode::kBadData, "It makes an output of type {}, which no output has.", type);
  }
}

// One call as the program sees it. It points into itself.
class ForeignCall {
 public:
  ForeignCall(const hearth_custom_operator& custom, void* state) {
    call_.size = sizeof call_;
    call_.user = custom.user;
    call_.state = state;
    call_.message = message_.data();
  }
  ForeignCall(const ForeignCall&) = delete;
  ForeignCall& operator=(const ForeignCall&) = delete;

  void setOptions(const ops::CustomCall& call) {
    call_.options = call.options.empty() ? nullptr : call.options.data();
    call_.option_bytes = call.options.size();
    call_.operation_version = call.codeVersion;
  }

  Status setTensors(const ops::CustomCall& call) {
    for (const ops::Tensor& input : call.inputs) {
      HEARTH_ASSIGN(hearth_custom_tensor * added, add(input));
      inputs_.push_back(added);
    }
    for (const ops::Tensor& output : call.outputs) {
      HEARTH_ASSIGN(hearth_custom_tensor * added, add(output));
      outputs_.push_back(added);
    }
    call_.inputs = inputs_.data();
    call_.input_count = inputs_.size();
    call_.outputs = outputs_.data();
    call_.output_count = outputs_.size();
    return {};
  }

  // For `prepare`: the outputs have no shapes yet.
  void forgetShapes() {
    for (hearth_custom_tensor* output : outputs_) {
      output->rank = HEARTH_RANK_UNKNOWN;
      std::fill(std::begin(output->dimensions), std::end(output->dimensions), 0);
      output->data = nullptr;
      output->byte_size = 0;
    }
  }

  hearth_custom_call& call() { return call_; }
  std::span<hearth_custom_tensor* const> outputs() const { return outputs_; }

  // Calls a function of the program. What leaves it as an exception is its failure.
  hearth_status run(hearth_custom_function function) {
    hearth_status status = HEARTH_OP_FAILED;
    const Status thrown = base::caught([&] { status = function(&call_); });
    message_.back() = '\0';
    if (thrown) return status;
    isException_ = true;
    if (message_[0] == '\0') {
      const std::string text = thrown.error().message();
      text.copy(message_.data(), message_.size() - 1);
    }
    return HEARTH_OP_FAILED;
  }

  // The error for a code other than HEARTH_OK that `what` has returned.
  std::unexpected<Error> failure(const char* what, hearth_status status) const {
    ErrorCode code = ErrorCode::kOpFailed;
    if (status == HEARTH_OUT_OF_MEMORY) code = ErrorCode::kOutOfMemory;
    if (status == HEARTH_BAD_DATA) code = ErrorCode::kBadData;
    if (status == HEARTH_UNSUPPORTED) code = ErrorCode::kUnsupported;
    std::string text(message_.data());
    for (char& letter : text)
      if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = ' ';
    if (isException_) return fail(code, "Its {} throws an exception: {}", what, text);
    if (text.empty()) return fail(code, "Its {} fails with the code {}.", what, int{status});
    return fail(code, "Its {} fails: {}", what, text);
  }

 private:
  // Null for an omitted argument.
  Result<hearth_custom_tensor*> add(const ops::Tensor& from) {
    if (!from.isPresent) return nullptr;
    if (from.dimensions.size() > HEARTH_CUSTOM_MAX_RANK)
      return fail(ErrorCode::kUnsupported,
                  "A tensor of rank {} cannot be given to a custom operator; the most is {}.",
                  from.dimensions.size(), HEARTH_CUSTOM_MAX_RANK);
    hearth_custom_tensor tensor{};
    tensor.size = sizeof tensor;
    const graph::Operand& operand = *from.operand;
    HEARTH_ASSIGN(tensor.type, publicType(operand.type));
    tensor.rank = static_cast<uint32_t>(from.dimensions.size());
    std::ranges::copy(from.dimensions, tensor.dimensions);
    tensor.scale = operand.scale;
    tensor.zero_point = operand.zeroPoint;
    if (!operand.perChannel.scales.empty()) {
      tensor.channel_scales = operand.perChannel.scales.data();
      tensor.channel_count = static_cast<uint32_t>(operand.perChannel.scales.size());
      tensor.channel_dimension = operand.perChannel.channelDim;
    }
    tensor.data = from.data;
    if (from.hasKnownShape || from.data != nullptr) {
      const uint64_t count = from.elementCount();
      tensor.byte_size = operand.type == OperandType::kTensorInt4
                             ? (count + 1) / 2
                             : count * graph::elementSize(operand.type);
    }
    tensors_.push_back(tensor);
    return &tensors_.back();
  }

  hearth_custom_call call_{};
  std::array<char, HEARTH_CUSTOM_MESSAGE_BYTES> message_{};
  bool isException_ = false;
  std::deque<hearth_custom_tensor> tensors_;  // never move
  std::vector<const hearth_custom_tensor*> inputs_;
  std::vector<hearth_custom_tensor*> outputs_;
};

// What `prepare` made of an output.
Result<graph::Operand> describedOutput(const hearth_custom_tensor& output, size_t index) {
  if (output.rank == HEARTH_RANK_UNKNOWN)
    return fail(ErrorCode::kBadData, "Its prepare sets no shape of output {}.", index);
  if (output.rank > HEARTH_CUSTOM_MAX_RANK)
    return fail(ErrorCode::kBadData, "Its prepare gives output {} the rank {}; the most is {}.",
                index, output.rank, HEARTH_CUSTOM_MAX_RANK);
  graph::Operand operand;
  HEARTH_ASSIGN(operand.type, operandType(output.type, output.scale != 0.0f));
  for (uint32_t i = 0; i < output.rank; ++i) {
    if (output.dimensions[i] > uint32_t{std::numeric_limits<int32_t>::max()})
      return fail(ErrorCode::kBadData,
                  "Its prepare gives output {} the dimension {}; it must be 0 to {}.", index,
                  static_cast<int32_t>(output.dimensions[i]), std::numeric_limits<int32_t>::max());
    operand.dimensions.push_back(output.dimensions[i]);
  }
  const bool takesScale = graph::isQuantized(operand.type);
  if (!takesScale && (output.scale != 0.0f || output.zero_point != 0))
    return fail(ErrorCode::kBadData,
                "Its prepare gives output {} of {} the scale {} and the zero point {}.", index,
                graph::nameOf(operand.type), output.scale, output.zero_point);
  // 8-bit integers without a scale.
  operand.scale = takesScale && output.scale == 0.0f ? 1.0f : output.scale;
  operand.zeroPoint = output.zero_point;
  return operand;
}

class ForeignNode final : public ops::CustomNode {
 public:
  ForeignNode(const hearth_custom_operator& custom, void* state, int32_t codeVersion)
      : custom_(custom), state_(state), codeVersion_(codeVersion) {}
  ~ForeignNode() override {
    if (custom_.free == nullptr) return;
    ForeignCall foreign(custom_, state_);
    foreign.call().operation_version = codeVersion_;
    base::logged("A custom operator's free", [&] { custom_.free(&foreign.call()); });
  }
  ForeignNode(const ForeignNode&) = delete;
  ForeignNode& operator=(const ForeignNode&) = delete;

  Result<ops::CustomOutputs> describeOutputs(const ops::CustomCall& call) const override {
    ForeignCall foreign(custom_, state_);
    foreign.setOptions(call);
    HEARTH_TRY(foreign.setTensors(call));
    foreign.forgetShapes();
    const hearth_status status = foreign.run(custom_.prepare);
    if (status == HEARTH_INCOMPLETE) return ops::CustomOutputs{true, {}};
    if (status != HEARTH_OK) return foreign.failure("prepare", status);
    ops::CustomOutputs said;
    for (size_t i = 0; i < foreign.outputs().size(); ++i) {
      HEARTH_ASSIGN(graph::Operand output, describedOutput(*foreign.outputs()[i], i));
      said.outputs.push_back(std::move(output));
    }
    return said;
  }

  Status compute(const ops::CustomCall& call) const override {
    ForeignCall foreign(custom_, state_);
    foreign.setOptions(call);
    HEARTH_TRY(foreign.setTensors(call));
    const hearth_status status = foreign.run(custom_.compute);
    if (status != HEARTH_OK) return foreign.failure("compute", status);
    return {};
  }

 private:
  const hearth_custom_operator& custom_;
  void* const state_;
  const int32_t codeVersion_;
};

class ForeignOperator final : public ops::CustomOperator {
 public:
  explicit ForeignOperator(const hearth_custom_operator& custom)
      : custom_(custom), name_(custom.name) {
    custom_.name = name_.c_str();
  }
  std::string_view name() const override { return name_; }
  int32_t version() const override { return custom_.version; }

  Result<std::shared_ptr<const ops::CustomNode>> makeNode(
      const ops::CustomCall& call) const override {
    void* state = nullptr;
    if (custom_.init != nullptr) {
      ForeignCall foreign(custom_, nullptr);
      foreign.setOptions(call);
      const hearth_status status = foreign.run(custom_.init);
      if (status != HEARTH_OK) return foreign.failure("init", status);
      state = foreign.call().state;
    }
    return std::make_shared<ForeignNode>(custom_, state, call.codeVersion);
  }

 private:
  hearth_custom_operator custom_;
  const std::string name_;
};

}  // namespace
}  // namespace hearth::api

extern "C" hearth_status hearth_custom_operator_register(const hearth_custom_operator* custom,
                                                         hearth_error** error) {
  using hearth::ErrorCode;
  using hearth::fail;
  return hearth::api::guarded(error, [&]() -> hearth::Status {
    if (custom == nullptr) return hearth::api::nullArgument("custom");
    hearth_custom_operator known{};
    HEARTH_TRY(
        hearth::api::readSized(*custom, sizeof(known), "fields of the custom operator", &known));
    if (known.name == nullptr) return hearth::api::nullArgument("custom->name");
    if (known.prepare == nullptr || known.compute == nullptr)
      return fail(ErrorCode::kBadData,
                  "The custom operator \"{}\" has no prepare or no compute; it needs both.",
                  known.name);
    if (hearth::tflite::isKnownCustomOperation(known.name))
      return fail(ErrorCode::kBadData,
                  "The custom operator \"{}\" is one of the library's own; it cannot be replaced.",
                  known.name);
    return hearth::ops::registerCustomOperator(
        std::make_unique<hearth::api::ForeignOperator>(known));
  });
}
