// SPDX-License-Identifier: Apache-2.0
// Recurrent layers. Their state tensors are variables, which NNAPI passes as inputs and outputs.
#include "frontends/tflite/reader/tensor_operand.h"
#include "frontends/tflite/reader/text.h"
#include "frontends/tflite/translators/translators.h"
#include "ops/quantized_sequence_lstm.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

// TFLite's LSTM inputs. Older files end before the layer normalisation.
constexpr size_t kInputWeights = 1;
constexpr size_t kInputToOutputWeights = 4;
constexpr size_t kBias = 12;
constexpr size_t kOutputState = 18;
constexpr size_t kCellState = 19;
constexpr size_t kLayerNorm = 20;
constexpr size_t kLstmInputs = 24;
constexpr size_t kBasicLstmInputs = 5;

Result<int32_t> fuseCode(schema::ActivationFunctionType type) {
  // NNAPI's LSTM and RNN use TFLite's numbers, where TANH is 4.
  constexpr int32_t kTanh = 4;
  constexpr int32_t kSigmoid = 6;
  switch (type) {
    case schema::ActivationFunctionType::NONE:
      return kFuseNone;
    case schema::ActivationFunctionType::RELU:
      return kFuseRelu;
    case schema::ActivationFunctionType::RELU_N1_TO_1:
      return kFuseRelu1;
    case schema::ActivationFunctionType::RELU6:
      return kFuseRelu6;
    case schema::ActivationFunctionType::TANH:
      return kTanh;
    default:
      if (static_cast<int32_t>(type) == kSigmoid) return kSigmoid;
      return fail(ErrorCode::kUnsupported, "Its activation {} is not supported.",
                  static_cast<int>(type));
  }
}

// Makes all arguments TENSOR_FLOAT32. Dynamic-range models have 8-bit weights beside float data.
// TFLite quantises the data at each step and multiplies in integers; here the weights are widened
// once a run, which loses nothing. kUnsupported when an argument is neither float nor weights.
Status requireFloat(OperatorView& view, std::span<uint32_t> operands) {
  for (uint32_t& index : operands) {
    const graph::Operand& operand = view.operand(index);
    if (!operand.hasValue() || operand.type == OperandType::kTensorFloat32) continue;
    const bool isWeights =
        operand.isConstant() && (operand.type == OperandType::kTensorQuant8AsymmSigned ||
                                 operand.type == OperandType::kTensorQuant8SymmPerChannel);
    if (!isWeights)
      return fail(ErrorCode::kUnsupported,
                  "Its argument {} is not supported, only TENSOR_FLOAT32 and 8-bit weights are.",
                  graph::describe(operand));
    HEARTH_ASSIGN(index, view.dequantized(index));
  }
  return {};
}

// Appends inputs [first, last); omitted ones have no value.
Status appendInputs(OperatorView& view, size_t first, size_t last, OperandType omitted,
                    std::vector<uint32_t>* arguments) {
  for (size_t i = first; i < last; ++i) {
    HEARTH_ASSIGN(const uint32_t input, view.inputOr(i, omitted));
    arguments->push_back(input);
  }
  return {};
}

template <typename Options>
Status appendClipping(OperatorView& view, const Options& options,
                      std::vector<uint32_t>* arguments) {
  HEARTH_ASSIGN(const int32_t code, fuseCode(options.fused_activation_function()));
  HEARTH_ASSIGN(const uint32_t fuse, view.scalar(code));
  HEARTH_ASSIGN(const uint32_t cellClip, view.scalar(options.cell_clip()));
  HEARTH_ASSIGN(const uint32_t projectionClip, view.scalar(options.proj_clip()));
  arguments->insert(arguments->end(), {fuse, cellClip, projectionClip});
  return {};
}

Status translateSvdf(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::SVDFOptions>();
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  const bool isInteger = view.operand(input).type == OperandType::kTensorQuant8AsymmSigned;
  std::vector<uint32_t> arguments;
  HEARTH_TRY(appendInputs(
      view, 0, 5, isInteger ? OperandType::kTensorInt32 : OperandType::kTensorFloat32, &arguments));
  if (!isInteger) HEARTH_TRY(requireFloat(view, arguments));
  HEARTH_ASSIGN(const uint32_t rank, view.scalar(options.rank()));
  HEARTH_ASSIGN(const int32_t code, fuseCode(options.fused_activation_function()));
  HEARTH_ASSIGN(const uint32_t fuse, view.scalar(code));
  arguments.insert(arguments.end(), {rank, fuse});
  HEARTH_ASSIGN(const uint32_t state, view.nextValue(4));
  HEARTH_ASSIGN(const uint32_t output, view.output(0));
  return view.emit(type, std::move(arguments), {state, output});
}

// The tensors of a float RNN, and the code of its activation.
Status appendFloatRnn(OperatorView& view, size_t inputs, schema::ActivationFunctionType activation,
                      std::vector<uint32_t>* arguments) {
  HEARTH_TRY(appendInputs(view, 0, inputs, OperandType::kTensorFloat32, arguments));
  HEARTH_TRY(requireFloat(view, *arguments));
  HEARTH_ASSIGN(const int32_t code, fuseCode(activation));
  HEARTH_ASSIGN(const uint32_t fuse, view.scalar(code));
  arguments->push_back(fuse);
  return {};
}

Status translateRnn(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::RNNOptions>();
  std::vector<uint32_t> arguments;
  HEARTH_TRY(appendFloatRnn(view, 5, options.fused_activation_function(), &arguments));
  HEARTH_ASSIGN(const uint32_t state, view.nextValue(4));
  HEARTH_ASSIGN(const uint32_t output, view.output(0));
  return view.emit(type, std::move(arguments), {state, output});
}

Status translateSequenceRnn(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::SequenceRNNOptions>();
  std::vector<uint32_t> arguments;
  HEARTH_TRY(appendFloatRnn(view, 5, options.fused_activation_function(), &arguments));
  HEARTH_ASSIGN(const uint32_t timeMajor, view.scalar(static_cast<int32_t>(options.time_major())));
  arguments.push_back(timeMajor);
  HEARTH_ASSIGN(const uint32_t state, view.nextValue(4));
  HEARTH_ASSIGN(const uint32_t output, view.output(0));
  return view.emit(type, std::move(arguments), {output, state});
}

Status translateBidirectionalRnn(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::BidirectionalSequenceRNNOptions>();
  std::vector<uint32_t> arguments;
  HEARTH_TRY(appendFloatRnn(view, 12, options.fused_activation_function(), &arguments));
  HEARTH_ASSIGN(const uint32_t timeMajor, view.scalar(options.time_major()));
  HEARTH_ASSIGN(const uint32_t merge, view.scalar(options.merge_outputs()));
  arguments.insert(arguments.end(), {timeMajor, merge});
  HEARTH_ASSIGN(const uint32_t forward, view.output(0));
  std::vector<uint32_t> outputs = {forward};
  if (!options.merge_outputs()) {
    HEARTH_ASSIGN(const uint32_t backward, view.output(1));
    outputs.push_back(backward);
  }
  for (const size_t state : {4, 8}) {
    HEARTH_ASSIGN(const uint32_t next, view.nextValue(state));
    outputs.push_back(next);
  }
  return view.emit(type, std::move(arguments), std::move(outputs));
}

Status translateBidirectionalLstm(OperatorView& view, OperationType type) {
  constexpr size_t kInputs = 48;
  const auto& options = view.options<schema::BidirectionalSequenceLSTMOptions>();
  std::vector<uint32_t> arguments;
  HEARTH_TRY(appendInputs(view, 0, kInputs, OperandType::kTensorFloat32, &arguments));
  HEARTH_TRY(requireFloat(view, arguments));
  HEARTH_TRY(appendClipping(view, options, &arguments));
  HEARTH_ASSIGN(const uint32_t merge, view.scalar(options.merge_outputs()));
  HEARTH_ASSIGN(const uint32_t timeMajor, view.scalar(options.time_major()));
  arguments.insert(arguments.end(), {merge, timeMajor});
  // Neither direction has layer normalisation.
  HEARTH_ASSIGN(const uint32_t none, view.builder().omitted(OperandType::kTensorFloat32));
  arguments.insert(arguments.end(), 8, none);
  HEARTH_ASSIGN(const uint32_t forward, view.output(0));
  std::vector<uint32_t> outputs = {forward};
  if (!options.merge_outputs()) {
    HEARTH_ASSIGN(const uint32_t backward, view.output(1));
    outputs.push_back(backward);
  }
  for (const size_t state : {35, 36, 37, 38}) {
    HEARTH_ASSIGN(const uint32_t next, view.nextValue(state));
    outputs.push_back(next);
  }
  return view.emit(type, std::move(arguments), std::move(outputs));
}

struct Intermediate {
  float scale = 0.0f;
  int32_t zeroPoint = 0;
};

// Scales of the values inside a quantised LSTM: four gates before layer normalisation, and the
// hidden state before the projection, by default that of the output.
Result<std::vector<Intermediate>> readIntermediates(OperatorView& view, uint32_t output) {
  constexpr size_t kCount = 5;
  std::vector<Intermediate> result(kCount);
  result.back() = {view.operand(output).scale, view.operand(output).zeroPoint};
  const auto* source = view.source().intermediates();
  if (source == nullptr || source->size() == 0) return result;
  if (source->size() != kCount)
    return fail(ErrorCode::kUnsupported,
                "It has {} intermediate tensors, which is not supported, it must have {}.",
                source->size(), kCount);
  for (size_t i = 0; i < kCount; ++i) {
    const int32_t index = source->Get(static_cast<uint32_t>(i));
    if (index < 0) continue;
    HEARTH_ASSIGN(const schema::Tensor* tensor, view.builder().tensor(index));
    const schema::QuantizationParameters* quantization = tensor->quantization();
    if (quantization == nullptr || quantization->scale() == nullptr ||
        quantization->scale()->size() == 0)
      continue;
    HEARTH_ASSIGN(const graph::Operand operand,
                  makeOperand(*tensor, cleanText(tensor->name()), ShapeSource::kFile,
                              view.builder().scaleLists()));
    result[i] = {operand.scale, operand.zeroPoint};
  }
  return result;
}

template <typename Options>
Status translateQuantizedSequenceLstm(OperatorView& view, const Options& options) {
  namespace lstm = ops::quantized_sequence_lstm;
  if (options.fused_activation_function() != schema::ActivationFunctionType::TANH)
    return fail(ErrorCode::kUnsupported, "Its activation {} is not supported, it must be TANH.",
                static_cast<int>(options.fused_activation_function()));
  std::vector<uint32_t> arguments;
  HEARTH_TRY(
      appendInputs(view, 0, lstm::kCellClip, OperandType::kTensorQuant8AsymmSigned, &arguments));
  HEARTH_ASSIGN(const uint32_t cellClip, view.scalar(options.cell_clip()));
  HEARTH_ASSIGN(const uint32_t projectionClip, view.scalar(options.proj_clip()));
  HEARTH_ASSIGN(const uint32_t timeMajor, view.scalar(options.time_major()));
  arguments.insert(arguments.end(), {cellClip, projectionClip, timeMajor});
  HEARTH_ASSIGN(const uint32_t output, view.output(0));
  HEARTH_ASSIGN(const std::vector<Intermediate> intermediates, readIntermediates(view, output));
  for (const Intermediate& intermediate : intermediates) {
    HEARTH_ASSIGN(const uint32_t scale, view.scalar(intermediate.scale));
    arguments.push_back(scale);
  }
  for (const Intermediate& intermediate : intermediates) {
    HEARTH_ASSIGN(const uint32_t zeroPoint, view.scalar(intermediate.zeroPoint));
    arguments.push_back(zeroPoint);
  }
  HEARTH_ASSIGN(const uint32_t outputState, view.nextValue(kOutputState));
  HEARTH_ASSIGN(const uint32_t cellState, view.nextValue(kCellState));
  return view.emit(OperationType::kQuantizedSequenceLstm, std::move(arguments),
                   {output, outputState, cellState});
}

Status translateSequenceLstm(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::UnidirectionalSequenceLSTMOptions>();
  if (options.diagonal_recurrent_tensors())
    return fail(ErrorCode::kUnsupported, "Its recurrent weights are diagonal.");
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  if (view.operand(input).type == OperandType::kTensorQuant8AsymmSigned)
    return translateQuantizedSequenceLstm(view, options);
  std::vector<uint32_t> arguments;
  HEARTH_TRY(appendInputs(view, 0, kLayerNorm, OperandType::kTensorFloat32, &arguments));
  HEARTH_TRY(requireFloat(view, arguments));
  HEARTH_TRY(appendClipping(view, options, &arguments));
  HEARTH_ASSIGN(const uint32_t timeMajor, view.scalar(options.time_major()));
  arguments.push_back(timeMajor);
  HEARTH_TRY(appendInputs(view, kLayerNorm, kLstmInputs, OperandType::kTensorFloat32, &arguments));
  HEARTH_ASSIGN(const uint32_t output, view.output(0));
  HEARTH_ASSIGN(const uint32_t outputState, view.nextValue(kOutputState));
  HEARTH_ASSIGN(const uint32_t cellState, view.nextValue(kCellState));
  return view.emit(type, std::move(arguments), {output, outputState, cellState});
}

// NNAPI's first output is room for the gates, which our kernels do not need.
Result<uint32_t> scratch(OperatorView& view, uint32_t input, uint32_t outputWeights) {
  graph::Operand operand;
  operand.type = OperandType::kTensorFloat32;
  const graph::Dimensions& batches = view.operand(input).dimensions;
  const graph::Dimensions& units = view.operand(outputWeights).dimensions;
  if (batches.empty() || units.empty())
    return fail(ErrorCode::kBadData, "Its input {} or its weights {} have rank 0.",
                graph::describe(view.operand(input)), graph::describe(view.operand(outputWeights)));
  const uint32_t gates = view.hasInput(kInputWeights) ? 4 : 3;
  uint32_t width;
  if (__builtin_mul_overflow(units[0], gates, &width))
    return fail(ErrorCode::kBadData, "Its weights {} have too many rows.",
                graph::describe(view.operand(outputWeights)));
  operand.dimensions = {batches[0], width};
  return view.builder().addOperand(std::move(operand));
}

// Retypes eight-bit weights as NNAPI's QUANTIZED_LSTM wants them: of a type without a zero point.
Status retypeSymmetric(OperatorView& view, size_t first, size_t last,
                       std::vector<uint32_t>* arguments) {
  for (size_t i = first; i < last; ++i) {
    const graph::Operand& operand = view.operand((*arguments)[i]);
    if (operand.type != OperandType::kTensorQuant8AsymmSigned || !operand.isConstant()) continue;
    if (operand.zeroPoint != 0)
      return fail(ErrorCode::kUnsupported, "Its weights {} have the zero point {}.",
                  graph::describe(operand), operand.zeroPoint);
    HEARTH_ASSIGN((*arguments)[i],
                  view.builder().retypedConstant((*arguments)[i], OperandType::kTensorQuant8Symm,
                                                 operand.scale));
  }
  return {};
}

Status translateQuantizedLstm(OperatorView& view, const schema::LSTMOptions& options) {
  constexpr size_t kProjectionWeights = 16;
  std::vector<uint32_t> arguments;
  HEARTH_TRY(appendInputs(view, 0, kLstmInputs, OperandType::kTensorQuant8Symm, &arguments));
  HEARTH_TRY(retypeSymmetric(view, kInputWeights, kBias, &arguments));
  HEARTH_TRY(retypeSymmetric(view, kProjectionWeights, kProjectionWeights + 1, &arguments));
  HEARTH_ASSIGN(const uint32_t cellClip, view.scalar(options.cell_clip()));
  HEARTH_ASSIGN(const uint32_t projectionClip, view.scalar(options.proj_clip()));
  arguments.insert(arguments.end(), {cellClip, projectionClip});
  HEARTH_ASSIGN(const uint32_t output, view.output(0));
  HEARTH_ASSIGN(const std::vector<Intermediate> intermediates, readIntermediates(view, output));
  for (size_t i = 0; i + 1 < intermediates.size(); ++i) {
    HEARTH_ASSIGN(const uint32_t scale, view.scalar(intermediates[i].scale));
    arguments.push_back(scale);
  }
  HEARTH_ASSIGN(const uint32_t hiddenZeroPoint, view.scalar(intermediates.back().zeroPoint));
  HEARTH_ASSIGN(const uint32_t hiddenScale, view.scalar(intermediates.back().scale));
  arguments.insert(arguments.end(), {hiddenZeroPoint, hiddenScale});
  HEARTH_ASSIGN(const uint32_t outputState, view.nextValue(kOutputState));
  HEARTH_ASSIGN(const uint32_t cellState, view.nextValue(kCellState));
  return view.emit(OperationType::kQuantizedLstm, std::move(arguments),
                   {outputState, cellState, output});
}

// Cuts a block out of a matrix, as an operand of its own.
Result<uint32_t> slice(OperatorView& view, uint32_t matrix, std::vector<int32_t> begin,
                       std::vector<int32_t> size) {
  HEARTH_ASSIGN(const uint32_t block, view.builder().temporaryLike(matrix));
  view.builder().operand(block).dimensions.assign(size.begin(), size.end());
  HEARTH_ASSIGN(const uint32_t beginOperand, view.builder().intTensor(begin));
  HEARTH_ASSIGN(const uint32_t sizeOperand, view.builder().intTensor(size));
  HEARTH_TRY(view.emit(OperationType::kSlice, {matrix, beginOperand, sizeOperand}, {block}));
  return block;
}

// The basic kernel has all gates in one matrix of [4 * units, input + units] and one bias; NNAPI
// has one operand for each. NNAPI's kernel joins a unit's recurrent weights and its input weights
// into one row, in this order, and multiplies it by the input followed by the output. So cutting
// TFLite's row after `units` makes the kernel restore it, although its first columns weigh the
// input.
Status translateBasicLstm(OperatorView& view) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t outputState, view.input(1));
  HEARTH_ASSIGN(const uint32_t weights, view.input(2));
  HEARTH_ASSIGN(uint32_t biases, view.input(3));
  HEARTH_ASSIGN(const uint32_t cellState, view.input(4));
  const graph::Dimensions shape = view.operand(weights).dimensions;
  const graph::Dimensions inputShape = view.operand(input).dimensions;
  if (view.operand(input).type != OperandType::kTensorQuant8Asymm)
    return fail(ErrorCode::kUnsupported,
                "It is a basic LSTM of {}, only TENSOR_QUANT8_ASYMM is supported.",
                graph::describe(view.operand(input)));
  if (!graph::isFullySpecified(view.operand(weights)) || shape.size() != 2 || shape[0] % 4 != 0 ||
      shape[1] <= shape[0] / 4 || shape[0] > 1u << 30 || shape[1] > 1u << 30)
    return fail(ErrorCode::kBadData, "Its weights have the shape {}.",
                graph::describeDimensions(shape));
  const int32_t units = static_cast<int32_t>(shape[0] / 4);
  const int32_t inputSize = static_cast<int32_t>(shape[1]) - units;
  const float scale = view.operand(input).scale * view.operand(weights).scale;
  if (view.operand(biases).isConstant()) {
    HEARTH_ASSIGN(biases, view.builder().retypedConstant(biases, view.operand(biases).type, scale));
  }
  // TFLite's order of the gates is input, cell, forget, output.
  constexpr int32_t kGates[] = {0, 2, 1, 3};
  std::vector<uint32_t> arguments = {input};
  for (const int32_t gate : kGates) {
    HEARTH_ASSIGN(const uint32_t block,
                  slice(view, weights, {gate * units, units}, {units, inputSize}));
    arguments.push_back(block);
  }
  for (const int32_t gate : kGates) {
    HEARTH_ASSIGN(const uint32_t block, slice(view, weights, {gate * units, 0}, {units, units}));
    arguments.push_back(block);
  }
  for (const int32_t gate : kGates) {
    HEARTH_ASSIGN(const uint32_t block, slice(view, biases, {gate * units}, {units}));
    arguments.push_back(block);
  }
  arguments.insert(arguments.end(), {cellState, outputState});
  HEARTH_ASSIGN(const uint32_t output, view.output(0));
  HEARTH_ASSIGN(const uint32_t newCellState, view.output(1));
  return view.emit(OperationType::kQuantized16bitLstm, std::move(arguments),
                   {newCellState, output});
}

Status translateLstm(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::LSTMOptions>();
  if (options.kernel_type() == schema::LSTMKernelType::BASIC ||
      view.inputCount() == kBasicLstmInputs)
    return translateBasicLstm(view);
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  if (view.operand(input).type == OperandType::kTensorQuant8AsymmSigned)
    return translateQuantizedLstm(view, options);
  std::vector<uint32_t> arguments;
  HEARTH_TRY(appendInputs(view, 0, kLayerNorm, OperandType::kTensorFloat32, &arguments));
  HEARTH_TRY(requireFloat(view, arguments));
  HEARTH_TRY(appendClipping(view, options, &arguments));
  HEARTH_TRY(appendInputs(view, kLayerNorm, kLstmInputs, OperandType::kTensorFloat32, &arguments));
  HEARTH_ASSIGN(const uint32_t outputWeights, view.input(kInputToOutputWeights));
  HEARTH_ASSIGN(const uint32_t room, scratch(view, input, outputWeights));
  HEARTH_ASSIGN(const uint32_t outputState, view.nextValue(kOutputState));
  HEARTH_ASSIGN(const uint32_t cellState, view.nextValue(kCellState));
  HEARTH_ASSIGN(const uint32_t output, view.output(0));
  return view.emit(type, std::move(arguments), {room, outputState, cellState, output});
}

}  // namespace

std::span<const TranslatorEntry> recurrentTranslators() {
  static constexpr TranslatorEntry kTranslators[] = {
      {BuiltinOperator::SVDF, translateSvdf, OperationType::kSvdf},
      {BuiltinOperator::RNN, translateRnn, OperationType::kRnn},
      {BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_RNN, translateSequenceRnn,
       OperationType::kUnidirectionalSequenceRnn},
      {BuiltinOperator::BIDIRECTIONAL_SEQUENCE_RNN, translateBidirectionalRnn,
       OperationType::kBidirectionalSequenceRnn},
      {BuiltinOperator::LSTM, translateLstm, OperationType::kLstm},
      {BuiltinOperator::UNIDIRECTIONAL_SEQUENCE_LSTM, translateSequenceLstm,
       OperationType::kUnidirectionalSequenceLstm},
      {BuiltinOperator::BIDIRECTIONAL_SEQUENCE_LSTM, translateBidirectionalLstm,
       OperationType::kBidirectionalSequenceLstm},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
