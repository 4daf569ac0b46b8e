// SPDX-License-Identifier: Apache-2.0
// The LSTM cell in float that LSTM and the sequence operations share, and the reader of the 18
// weights that all of them list in one order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/recurrent_activation.h"
#include "ops/sequence_shape.h"
#include "ops/validation.h"

namespace hearth::ops {

// Where the arguments of one cell stand in an operation's input list. Relative to `weights`:
// 0-3 input weights {input*, forget, cell, output}, 4-7 recurrent weights, 8-10 peephole weights
// {input*, forget*, output*}, 11-14 biases, 15 projection weights*, 16 projection bias*. Those
// marked * may be omitted; omitting input and recurrent weights and bias of the input gate couples
// it to the forget gate (CIFG).
struct LstmLayout {
  size_t input = 0;
  size_t weights = 1;
  size_t outputState = 0, cellState = 0;
  size_t layerNorm = 0;   // 4 weights*; all but the input gate's together
  size_t auxInput = 0;    // 0: none; with weights, a second input
  size_t auxWeights = 0;  // 4 weights*
};

struct LstmParameters {
  uint32_t inputSize = 0;
  uint32_t auxSize = 0;  // 0: no auxiliary weights
  uint32_t unitCount = 0;
  uint32_t outputSize = 0;
  bool isCoupled = false;
  RecurrentActivation activation = RecurrentActivation::kTanh;
  float cellClip = 0.0f;        // 0: none
  float projectionClip = 0.0f;  // 0: none
};

// Types of one cell's inputs: all like input 0, which the caller has checked.
Status validateLstm(const Signature& signature, const LstmLayout& layout);

// Reads the sizes from the weights and checks every shape of the cell; `batches` is that of the
// states. The caller reads the scalars. An argument with no elements counts as omitted.
Result<LstmParameters> parseLstm(const OperationContext& context, const LstmLayout& layout,
                                 uint32_t inputSize, uint32_t batches);

// The activation and the two clips at three consecutive inputs.
Status parseLstmScalars(const OperationContext& context, size_t index, LstmParameters* parameters);

// One cell ready to step, with states for all batch elements. Not thread-safe.
class LstmCell {
 public:
  LstmCell(const OperationContext& context, const LstmLayout& layout,
           const LstmParameters& parameters);

  // One time step of all batch elements, whose inputs are `input`; `aux` is not read without
  // auxiliary weights.
  void step(const Vectors& input, const Vectors& aux);

  const float* outputState(size_t batch) const {
    return outputState_.data() + batch * parameters_.outputSize;
  }
  const std::vector<float>& outputStates() const { return outputState_; }
  const std::vector<float>& cellStates() const { return cellState_; }

 private:
  enum Gate { kInputGate, kForgetGate, kCellGate, kOutputGate };

  const float* values(const OperationContext& context, size_t index);
  void computeGate(Gate gate, const Vectors& input, const Vectors& aux);

  LstmParameters parameters_;
  std::vector<std::unique_ptr<RealInput>> kept_;
  std::array<const float*, 4> inputWeights_{}, recurrentWeights_{}, peepholeWeights_{}, biases_{},
      layerNormWeights_{}, auxWeights_{};
  const float* projectionWeights_ = nullptr;
  const float* projectionBias_ = nullptr;
  std::vector<float> outputState_, cellState_;
  std::array<std::vector<float>, 4> gates_;  // [batches, units]
};

// All time steps of a cell, last step first when `isReversed`. Row r of the output, `outputSize`
// values, starts at output + r * outputStride.
void runLstm(LstmCell* cell, const SequenceShape& shape, bool isReversed, const float* input,
             size_t inputSize, const float* aux, size_t auxSize, size_t outputSize, float* output,
             size_t outputStride);

}  // namespace hearth::ops
