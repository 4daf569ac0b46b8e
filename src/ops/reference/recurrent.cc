// SPDX-License-Identifier: Apache-2.0
// LSTM, RNN, their sequences in one or two directions, and SVDF. The state is not rounded between
// steps.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "ops/bidirectional_sequence.h"
#include "ops/fixed_point.h"
#include "ops/lstm_cell.h"
#include "ops/recurrent_activation.h"
#include "ops/reference/elements.h"
#include "ops/reference/kernels.h"
#include "ops/rnn_cell.h"
#include "ops/sequence_shape.h"
#include "ops/validation.h"

namespace hearth::ops::reference {
namespace {

using Numbers = std::vector<double>;

// A range of an argument's elements; empty when it is omitted.
Numbers numbersOf(const OperationContext& context, size_t input, int64_t first, int64_t count) {
  Numbers numbers;
  if (!isGiven(context, input)) return numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(realAt(context.inputs[input], first + i));
  return numbers;
}

Numbers numbersOf(const OperationContext& context, size_t input) {
  return isGiven(context, input)
             ? numbersOf(context, input, 0, countOf(context.inputs[input].dimensions))
             : Numbers();
}

// Row `row` of a matrix times a vector; 0 without a matrix.
double productOf(const Numbers& matrix, size_t row, const Numbers& vector) {
  if (matrix.empty()) return 0;
  double sum = 0;
  for (size_t i = 0; i < vector.size(); ++i) sum += matrix[row * vector.size() + i] * vector[i];
  return sum;
}

double activated(double x, RecurrentActivation activation) {
  switch (activation) {
    case RecurrentActivation::kRelu:
      return std::max(x, 0.0);
    case RecurrentActivation::kRelu1:
      return std::clamp(x, -1.0, 1.0);
    case RecurrentActivation::kRelu6:
      return std::clamp(x, 0.0, 6.0);
    case RecurrentActivation::kTanh:
      return std::tanh(x);
    case RecurrentActivation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case RecurrentActivation::kNone:
      break;
  }
  return x;
}

void clip(double bound, Numbers* numbers) {
  if (bound > 0)
    for (double& number : *numbers) number = std::clamp(number, -bound, bound);
}

// Writes numbers to an output, which may be omitted.
void putNumbers(const OperationContext& context, size_t output, int64_t first,
                const Numbers& numbers) {
  if (!context.hasOutput(output)) return;
  for (size_t i = 0; i < numbers.size(); ++i)
    putReal(context.outputs[output], first + static_cast<int64_t>(i), numbers[i]);
}

// An LSTM cell. Computes one batch element at a time.
class Lstm {
 public:
  Lstm(const OperationContext& context, const LstmLayout& layout, const LstmParameters& parameters)
      : context_(context), layout_(layout), p_(parameters) {
    // The input gate of a coupled cell is 1 - forget gate.
    for (size_t gate = p_.isCoupled ? 1 : 0; gate < 4; ++gate) {
      const size_t weights = layout.weights + gate;
      inputWeights_[gate] = numbersOf(context, weights);
      recurrentWeights_[gate] = numbersOf(context, weights + 4);
      biases_[gate] = numbersOf(context, weights + 11);
      normWeights_[gate] = numbersOf(context, layout.layerNorm + gate);
      if (p_.auxSize > 0) auxWeights_[gate] = numbersOf(context, layout.auxWeights + gate);
    }
    // Peephole weights come in the order input, forget, output.
    if (!p_.isCoupled) peepholes_[kInput] = numbersOf(context, layout.weights + 8);
    peepholes_[kForget] = numbersOf(context, layout.weights + 9);
    peepholes_[kOutput] = numbersOf(context, layout.weights + 10);
    projection_ = numbersOf(context, layout.weights + 15);
    projectionBias_ = numbersOf(context, layout.weights + 16);
  }

  void start(int64_t batch) {
    hidden_ = numbersOf(context_, layout_.outputState, batch * p_.outputSize, p_.outputSize);
    cell_ = numbersOf(context_, layout_.cellState, batch * p_.unitCount, p_.unitCount);
  }

  void step(const Numbers& input, const Numbers& aux) {
    const Numbers forget = gateOf(kForget, input, aux);
    const Numbers entering = p_.isCoupled ? Numbers() : gateOf(kInput, input, aux);
    const Numbers candidate = gateOf(kCell, input, aux);
    for (size_t i = 0; i < cell_.size(); ++i)
      cell_[i] = forget[i] * cell_[i] + (p_.isCoupled ? 1 - forget[i] : entering[i]) * candidate[i];
    clip(p_.cellClip, &cell_);
    Numbers result = gateOf(kOutput, input, aux);
    for (size_t i = 0; i < cell_.size(); ++i) result[i] *= activated(cell_[i], p_.activation);
    hidden_ = result;
    if (projection_.empty()) return;
    hidden_.resize(p_.outputSize);
    for (size_t i = 0; i < hidden_.size(); ++i)
      hidden_[i] =
          productOf(projection_, i, result) + (projectionBias_.empty() ? 0 : projectionBias_[i]);
    clip(p_.projectionClip, &hidden_);
  }

  const Numbers& hidden() const { return hidden_; }
  const Numbers& cell() const { return cell_; }

 private:
  enum Gate : size_t { kInput, kForget, kCell, kOutput };

  Numbers gateOf(Gate gate, const Numbers& input, const Numbers& aux) const {
    Numbers values(p_.unitCount);
    const Numbers& bias = biases_[gate];
    const Numbers& norm = normWeights_[gate];
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] =
          productOf(inputWeights_[gate], i, input) + productOf(recurrentWeights_[gate], i, hidden_);
      if (!auxWeights_[gate].empty()) values[i] += productOf(auxWeights_[gate], i, aux);
      if (!peepholes_[gate].empty()) values[i] += peepholes_[gate][i] * cell_[i];
    }
    if (!norm.empty()) normalize(&values);
    for (size_t i = 0; i < values.size(); ++i) {
      if (!norm.empty()) values[i] *= norm[i];
      if (!bias.empty()) values[i] += bias[i];
      values[i] =
          activated(values[i], gate == kCell ? p_.activation : RecurrentActivation::kSigmoid);
    }
    return values;
  }

  // Normalises to mean 0 and variance 1.
  static void normalize(Numbers* values) {
    const auto count = static_cast<double>(values->size());
    double mean = 0;
    for (const double value : *values) mean += value / count;
    double variance = 0;
    for (const double value : *values) variance += (value - mean) * (value - mean) / count;
    for (double& value : *values) value = (value - mean) / std::sqrt(variance + 1e-8);
  }

  const OperationContext& context_;
  const LstmLayout layout_;
  const LstmParameters p_;
  std::array<Numbers, 4> inputWeights_, recurrentWeights_, auxWeights_, biases_, normWeights_,
      peepholes_;
  Numbers projection_, projectionBias_, hidden_, cell_;
};

class Rnn {
 public:
  Rnn(const OperationContext& context, const RnnLayout& layout, const RnnParameters& parameters)
      : context_(context),
        layout_(layout),
        p_(parameters),
        weights_(numbersOf(context, layout.weights)),
        recurrentWeights_(numbersOf(context, layout.recurrentWeights())),
        auxWeights_(p_.auxSize > 0 ? numbersOf(context, layout.auxWeights) : Numbers()),
        bias_(numbersOf(context, layout.bias())) {}

  void start(int64_t batch) {
    hidden_ = numbersOf(context_, layout_.hiddenState(), batch * p_.unitCount, p_.unitCount);
  }

  void step(const Numbers& input, const Numbers& aux) {
    Numbers next(p_.unitCount);
    for (size_t i = 0; i < next.size(); ++i) {
      double sum =
          bias_[i] + productOf(weights_, i, input) + productOf(recurrentWeights_, i, hidden_);
      if (!auxWeights_.empty()) sum += productOf(auxWeights_, i, aux);
      next[i] = activated(sum, p_.activation);
    }
    hidden_ = std::move(next);
  }

  const Numbers& hidden() const { return hidden_; }

 private:
  const OperationContext& context_;
  const RnnLayout layout_;
  const RnnParameters p_;
  const Numbers weights_, recurrentWeights_, auxWeights_, bias_;
  Numbers hidden_;
};

// Where a cell reads its inputs and writes its results.
struct Run {
  SequenceShape shape;
  bool isReversed = false;
  size_t input = 0;  // argument of [rows, inputSize]
  int64_t inputSize = 0;
  size_t aux = 0;  // argument of [rows, auxSize]; 0 for none
  int64_t auxSize = 0;
  size_t output = 0;  // of [rows, outputStride]; the run writes its elements from outputFirst on
  int64_t outputFirst = 0;
  int64_t outputStride = 0;
  size_t hiddenState = 0;  // output of [batches, size]
};

// Calls finish(batch) after the last step of each batch element.
template <typename Cell, typename Finish>
void runSteps(const OperationContext& context, const Run& run, Cell* cell, const Finish& finish) {
  for (int64_t batch = 0; batch < run.shape.batches; ++batch) {
    cell->start(batch);
    for (int64_t i = 0; i < run.shape.steps; ++i) {
      const auto row = static_cast<int64_t>(
          run.shape.row(static_cast<size_t>(batch),
                        static_cast<size_t>(run.isReversed ? run.shape.steps - 1 - i : i)));
      const Numbers aux =
          run.aux == 0 ? Numbers() : numbersOf(context, run.aux, row * run.auxSize, run.auxSize);
      cell->step(numbersOf(context, run.input, row * run.inputSize, run.inputSize), aux);
      putNumbers(context, run.output, row * run.outputStride + run.outputFirst, cell->hidden());
    }
    putNumbers(context, run.hiddenState, batch * static_cast<int64_t>(cell->hidden().size()),
               cell->hidden());
    finish(batch);
  }
}

void runLstm(const OperationContext& context, const LstmLayout& layout,
             const LstmParameters& parameters, const Run& run, size_t cellState) {
  Lstm cell(context, layout, parameters);
  runSteps(context, run, &cell, [&](int64_t batch) {
    putNumbers(context, cellState, batch * parameters.unitCount, cell.cell());
  });
}

void runRnn(const OperationContext& context, const RnnLayout& layout,
            const RnnParameters& parameters, const Run& run) {
  Rnn cell(context, layout, parameters);
  runSteps(context, run, &cell, [](int64_t) {});
}

// The runs of two cells, whose outputs come first (one tensor or two), followed by their states.
struct BothRuns {
  Run forward;
  Run backward;
};

BothRuns runsOf(const BidirectionalParameters& p, size_t auxInput, bool readsAux,
                int64_t forwardSize, int64_t backwardSize) {
  const int64_t stride = forwardSize + backwardSize;
  BothRuns runs;
  runs.forward.shape = p.shape;
  runs.forward.inputSize = p.inputSize;
  runs.forward.aux = readsAux ? auxInput : 0;
  runs.forward.auxSize = p.auxSize;
  runs.forward.outputStride = p.mergesOutputs ? stride : forwardSize;
  runs.backward = runs.forward;
  runs.backward.isReversed = true;
  runs.backward.input = p.backwardReadsAux ? auxInput : 0;
  runs.backward.inputSize = p.backwardSize;
  runs.backward.output = p.mergesOutputs ? 0 : 1;
  runs.backward.outputFirst = p.mergesOutputs ? forwardSize : 0;
  runs.backward.outputStride = p.mergesOutputs ? stride : backwardSize;
  return runs;
}

// SVDF of int8 data with a 16-bit state. Sums are 32-bit and wrap.
Status runIntegerSvdf(const OperationContext& context, int64_t rank) {
  const Tensor& input = context.inputs[0];
  const Tensor& featureWeights = context.inputs[1];
  const Tensor& timeWeights = context.inputs[2];
  const Tensor& state = context.inputs[4];
  const Tensor& output = context.outputs[1];
  const int64_t features = input.dimensions[1];
  const int64_t filters = featureWeights.dimensions[0];
  const int64_t memory = timeWeights.dimensions[1];
  const float stateScale = state.operand->scale;
  const FixedMultiplier toState = toFixedMultiplier(
      static_cast<double>(input.operand->scale * featureWeights.operand->scale / stateScale));
  const FixedMultiplier toOutput = toFixedMultiplier(
      static_cast<double>(stateScale * timeWeights.operand->scale / output.operand->scale));
  const int64_t units = filters / rank;
  for (int64_t place = 0; place < input.dimensions[0] * units; ++place) {
    int64_t sum = isGiven(context, 3) ? loadAs<int32_t>(context.inputs[3], place % units) : 0;
    for (int64_t r = 0; r < rank; ++r) {
      const int64_t filter = place % units * rank + r;
      const int64_t history = (place / units * filters + filter) * memory;
      int64_t product = 0;
      for (int64_t i = 0; i < features; ++i)
        product += (loadAs<int8_t>(input, place / units * features + i) -
                    int64_t{input.operand->zeroPoint}) *
                   loadAs<int8_t>(featureWeights, filter * features + i);
      const int32_t newest =
          std::clamp(multiply(static_cast<int32_t>(product), toState), -32768, 32767);
      for (int64_t age = 0; age < memory; ++age) {
        const bool isNewest = age == memory - 1;
        const int32_t value = isNewest ? newest : loadAs<int16_t>(state, history + age);
        sum += int64_t{value} * loadAs<int16_t>(timeWeights, filter * memory + age);
        if (!context.hasOutput(0)) continue;
        if (age > 0) storeAs(context.outputs[0], history + age - 1, static_cast<int16_t>(value));
        if (isNewest) storeAs<int16_t>(context.outputs[0], history + age, 0);
      }
    }
    if (!context.hasOutput(1)) continue;
    const int64_t value =
        int64_t{multiply(static_cast<int32_t>(sum), toOutput)} + output.operand->zeroPoint;
    storeAs(output, place, static_cast<int8_t>(std::clamp<int64_t>(value, -128, 127)));
  }
  return {};
}

}  // namespace

// Outputs: scratch, which is zeros; both states; the output.
Status stepLstm(const OperationContext& context) {
  constexpr LstmLayout kLayout = {
      .weights = 1, .outputState = 18, .cellState = 19, .layerNorm = 23};
  const Dimensions& input = context.inputs[0].dimensions;
  HEARTH_ASSIGN(LstmParameters parameters, parseLstm(context, kLayout, input[1], input[0]));
  HEARTH_TRY(parseLstmScalars(context, 20, &parameters));
  if (context.hasOutput(0)) {
    const Tensor& scratch = context.outputs[0];
    std::memset(
        scratch.data, 0,
        static_cast<size_t>(countOf(scratch.dimensions)) * graph::elementSize(scratch.type()));
  }
  const Run run = {.shape = {input[0], 1, false},
                   .inputSize = input[1],
                   .output = 3,
                   .outputStride = parameters.outputSize,
                   .hiddenState = 1};
  runLstm(context, kLayout, parameters, run, 2);
  return {};
}

Status runLstmSequence(const OperationContext& context) {
  constexpr LstmLayout kLayout = {
      .weights = 1, .outputState = 18, .cellState = 19, .layerNorm = 24};
  const Dimensions& input = context.inputs[0].dimensions;
  HEARTH_ASSIGN(const bool isTimeMajor, context.scalar<bool>(23));
  const SequenceShape shape = SequenceShape::of(input, isTimeMajor);
  HEARTH_ASSIGN(LstmParameters parameters, parseLstm(context, kLayout, input[2], shape.batches));
  HEARTH_TRY(parseLstmScalars(context, 20, &parameters));
  const Run run = {.shape = shape,
                   .inputSize = input[2],
                   .outputStride = parameters.outputSize,
                   .hiddenState = 1};
  runLstm(context, kLayout, parameters, run, 2);
  return {};
}

Status runLstmInBothDirections(const OperationContext& context) {
  constexpr auto layoutOf = [](size_t weights, size_t states, size_t norms, size_t auxWeights) {
    return LstmLayout{.weights = weights,
                      .outputState = states,
                      .cellState = states + 1,
                      .layerNorm = norms,
                      .auxInput = 39,
                      .auxWeights = auxWeights};
  };
  constexpr LstmLayout kForward = layoutOf(1, 35, 53, 40);
  constexpr LstmLayout kBackward = layoutOf(18, 37, 57, 44);
  // The forget gate's weights, since the input gate's may be omitted.
  constexpr BidirectionalLayout kSequence = {
      .auxInput = 39, .auxWeights = 41, .activation = 48, .timeMajor = 52, .mergeOutputs = 51};
  HEARTH_ASSIGN(const BidirectionalParameters p, parseBidirectional(context, kSequence));
  HEARTH_ASSIGN(LstmParameters forward, parseLstm(context, kForward, p.inputSize, p.shape.batches));
  HEARTH_ASSIGN(LstmParameters backward,
                parseLstm(context, kBackward, p.backwardSize, p.shape.batches));
  HEARTH_TRY(parseLstmScalars(context, kSequence.activation, &forward));
  HEARTH_TRY(parseLstmScalars(context, kSequence.activation, &backward));
  BothRuns runs =
      runsOf(p, kSequence.auxInput, forward.auxSize > 0, forward.outputSize, backward.outputSize);
  const size_t states = p.mergesOutputs ? 1 : 2;
  runs.forward.hiddenState = states;
  runs.backward.hiddenState = states + 2;
  runLstm(context, kForward, forward, runs.forward, states + 1);
  runLstm(context, kBackward, backward, runs.backward, states + 3);
  return {};
}

// Outputs: the state and the output, which are equal.
Status stepRnn(const OperationContext& context) {
  constexpr RnnLayout kLayout = {.weights = 1};
  const Dimensions& input = context.inputs[0].dimensions;
  HEARTH_ASSIGN(RnnParameters parameters, parseRnn(context, kLayout, input[1], 0, input[0]));
  HEARTH_ASSIGN(parameters.activation, parseRecurrentActivation(context, 5));
  const Run run = {.shape = {input[0], 1, false},
                   .inputSize = input[1],
                   .output = 1,
                   .outputStride = parameters.unitCount,
                   .hiddenState = 0};
  runRnn(context, kLayout, parameters, run);
  return {};
}

Status runRnnSequence(const OperationContext& context) {
  constexpr RnnLayout kLayout = {.weights = 1};
  const Dimensions& input = context.inputs[0].dimensions;
  HEARTH_ASSIGN(const int32_t timeMajor, context.scalar<int32_t>(6));
  const SequenceShape shape = SequenceShape::of(input, timeMajor != 0);
  HEARTH_ASSIGN(RnnParameters parameters, parseRnn(context, kLayout, input[2], 0, shape.batches));
  HEARTH_ASSIGN(parameters.activation, parseRecurrentActivation(context, 5));
  const Run run = {.shape = shape,
                   .inputSize = input[2],
                   .outputStride = parameters.unitCount,
                   .hiddenState = 1};
  runRnn(context, kLayout, parameters, run);
  return {};
}

Status runRnnInBothDirections(const OperationContext& context) {
  constexpr RnnLayout kForward = {.weights = 1, .auxWeights = 10};
  constexpr RnnLayout kBackward = {.weights = 5, .auxWeights = 11};
  constexpr BidirectionalLayout kSequence = {
      .auxInput = 9, .auxWeights = 10, .activation = 12, .timeMajor = 13, .mergeOutputs = 14};
  HEARTH_ASSIGN(const BidirectionalParameters p, parseBidirectional(context, kSequence));
  const uint32_t auxSize = isGiven(context, kForward.auxWeights) ? p.auxSize : 0;
  HEARTH_ASSIGN(RnnParameters forward,
                parseRnn(context, kForward, p.inputSize, auxSize, p.shape.batches));
  HEARTH_ASSIGN(RnnParameters backward,
                parseRnn(context, kBackward, p.backwardSize, auxSize, p.shape.batches));
  HEARTH_ASSIGN(forward.activation, parseRecurrentActivation(context, kSequence.activation));
  backward.activation = forward.activation;
  BothRuns runs = runsOf(p, kSequence.auxInput, auxSize > 0, forward.unitCount, backward.unitCount);
  runs.forward.hiddenState = p.mergesOutputs ? 1 : 2;
  runs.backward.hiddenState = runs.forward.hiddenState + 1;
  runRnn(context, kForward, forward, runs.forward);
  runRnn(context, kBackward, backward, runs.backward);
  return {};
}

// Inputs: data, feature weights [filters, features], time weights [filters, memory], bias [units],
// state [batches, filters * memory], rank, activation. Outputs: the state, the output. A call
// writes the products of features to the last column of the state, which is zero before, and then
// shifts the state by one column.
Status runSvdf(const OperationContext& context) {
  const int64_t batches = context.inputs[0].dimensions[0];
  const int64_t filters = context.inputs[1].dimensions[0];
  const int64_t memory = context.inputs[2].dimensions[1];
  HEARTH_ASSIGN(const int32_t rank, context.scalar<int32_t>(5));
  if (graph::isQuantized(context.inputs[0].type())) return runIntegerSvdf(context, rank);
  HEARTH_ASSIGN(const RecurrentActivation activation, parseRecurrentActivation(context, 6));
  const int64_t features = context.inputs[0].dimensions[1];
  const Numbers featureWeights = numbersOf(context, 1);
  const Numbers timeWeights = numbersOf(context, 2);
  const Numbers bias = numbersOf(context, 3);
  for (int64_t batch = 0; batch < batches; ++batch) {
    Numbers sums(static_cast<size_t>(filters / rank));
    for (int64_t filter = 0; filter < filters; ++filter) {
      const int64_t place = (batch * filters + filter) * memory;
      Numbers history = numbersOf(context, 4, place, memory);
      history.back() = productOf(featureWeights, static_cast<size_t>(filter),
                                 numbersOf(context, 0, batch * features, features));
      sums[static_cast<size_t>(filter / rank)] +=
          productOf(timeWeights, static_cast<size_t>(filter), history);
      history.erase(history.begin());
      history.push_back(0);
      putNumbers(context, 0, place, history);
    }
    for (size_t unit = 0; unit < sums.size(); ++unit)
      sums[unit] = activated(sums[unit] + (bias.empty() ? 0 : bias[unit]), activation);
    putNumbers(context, 1, batch * static_cast<int64_t>(sums.size()), sums);
  }
  return {};
}

}  // namespace hearth::ops::reference
