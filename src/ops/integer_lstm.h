// SPDX-License-Identifier: Apache-2.0
// The LSTM cell in integers that QUANTIZED_SEQUENCE_LSTM and QUANTIZED_LSTM share: 8-bit input,
// weights and output state, 16-bit gates and cell state.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ops/fixed_point.h"
#include "ops/operation.h"
#include "ops/validation.h"

namespace hearth::ops {

// The arguments of one cell. Pointers are into the tensors; null where an argument is omitted.
struct IntegerLstmArguments {
  struct Gate {
    const Tensor* inputWeights = nullptr;
    const Tensor* recurrentWeights = nullptr;
    const Tensor* peepholeWeights = nullptr;
    const Tensor* bias = nullptr;
    const Tensor* layerNormWeights = nullptr;
    float intermediateScale = 0.0f;  // of the sum before layer normalisation
  };
  Gate input, forget, cell, output;  // without inputWeights the input gate is 1 - forget gate
  const Tensor* projectionWeights = nullptr;
  const Tensor* projectionBias = nullptr;
  const graph::Operand* inputOperand = nullptr;
  const graph::Operand* outputStateOperand = nullptr;
  const graph::Operand* cellStateOperand = nullptr;
  float cellClip = 0.0f, projectionClip = 0.0f;
  float hiddenScale = 0.0f;
  int32_t hiddenZeroPoint = 0;
  uint32_t inputSize = 0, unitCount = 0, outputSize = 0;
};

// Types of inputs 0 to 25, which both operations have in common; quantized_sequence_lstm.h lists
// them.
Status validateIntegerLstm(const Signature& signature);

// The same inputs with their shapes checked, the input's last dimension being the features. The
// intermediate and hidden scales are left to the caller. Data may be null.
Result<IntegerLstmArguments> readIntegerLstm(const OperationContext& context, uint32_t batches);

// One cell, ready to step. Not thread-safe (scratch memory); the arguments' data must outlive it.
class IntegerLstm {
 public:
  // kBadData for scales that are no power of two where one is needed, or not positive.
  static Result<IntegerLstm> make(const OperationContext& context,
                                  const IntegerLstmArguments& arguments);

  // One time step of one batch element: reads `input`, reads and writes both states.
  void step(const int8_t* input, int8_t* outputState, int16_t* cellState);

 private:
  struct Gate {
    const int8_t* inputWeights = nullptr;
    const int8_t* recurrentWeights = nullptr;
    const int16_t* peepholeWeights = nullptr;
    const int32_t* bias = nullptr;  // added to the sum, or after layer normalisation
    const int16_t* layerNormWeights = nullptr;
    FixedMultiplier inputScale, recurrentScale, peepholeScale, layerNormScale;
    int32_t varianceGuard = 1;
  };

  Gate makeGate(const IntegerLstmArguments& arguments,
                const IntegerLstmArguments::Gate& gate) const;
  void computeGate(const Gate& gate, const int16_t* cellState, std::vector<int16_t>* values);
  void normalize(const Gate& gate, std::vector<int16_t>* values) const;

  uint32_t inputSize_ = 0;
  uint32_t unitCount_ = 0;
  uint32_t outputSize_ = 0;
  bool isCoupled_ = false;
  Gate inputGate_, forgetGate_, cellGate_, outputGate_;
  const int8_t* projectionWeights_ = nullptr;
  const int32_t* projectionBias_ = nullptr;
  FixedMultiplier hiddenScale_, projectionScale_;
  int32_t hiddenZeroPoint_ = 0;
  int32_t inputZeroPoint_ = 0;
  int32_t outputZeroPoint_ = 0;
  int cellScaleExponent_ = 0;
  int32_t cellClip_ = 0;        // in steps of the cell state; 0: none
  int32_t projectionClip_ = 0;  // in steps of the output state; 0: none
  // Scratch: operands of the products without their zero points, the products, and the gates.
  std::vector<int16_t> inputValues_, outputValues_, hiddenValues_;
  std::vector<int32_t> fromInput_, fromState_, projected_;
  std::vector<int16_t> inputGateValues_, forgetGateValues_, cellGateValues_, outputGateValues_;
};

}  // namespace hearth::ops
