// SPDX-License-Identifier: Apache-2.0
// QUANTIZED_SEQUENCE_LSTM of the extension hearth.tflite: TFLite's UNIDIRECTIONAL_SEQUENCE_LSTM
// with 8-bit input, weights and output state, 16-bit cell state and tanh as activation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ops/integer_lstm.h"
#include "ops/operation.h"
#include "ops/sequence_shape.h"

namespace hearth::ops {

// Arguments, in TFLite's order; those marked * may be omitted (kNoValue). "int8" is
// TENSOR_QUANT8_ASYMM_SIGNED, for weights with zero point 0, or TENSOR_QUANT8_SYMM; "int16" is
// TENSOR_QUANT16_SYMM, or TENSOR_INT16 with a scale and zero point 0; "int32" is TENSOR_INT32.
//
//    0     input: int8 [batch, time, inputSize], time first when time_major is set
//    1-4   input-to-{input*, forget, cell, output} weights: int8 [numUnits, inputSize]
//    5-8   recurrent-to-{input*, forget, cell, output} weights: int8 [numUnits, outputSize]
//    9-11  cell-to-{input*, forget*, output*} (peephole) weights: int16 [numUnits]
//   12-15  {input*, forget, cell, output} gate bias: int32 [numUnits]
//   16-17  projection weights*: int8 [outputSize, numUnits]; projection bias*: int32 [outputSize]
//   18     output state: int8 [batch, outputSize]
//   19     cell state: int16 [batch, numUnits], the scale a power of two from 2^-30 to 1
//   20-23  {input*, forget*, cell*, output*} layer normalisation weights: int16 [numUnits]
//   24-25  FLOAT32 cell_clip and proj_clip; 0 means no clipping
//   26     BOOL time_major
//   27-31  FLOAT32 scales of the intermediate tensors {input, forget, cell, output gate, hidden}
//   32-36  INT32 zero points of the same five
//
// Omitting inputs 1, 5 and 12 couples the input gate to the forget gate (CIFG). The intermediate
// scales 27-30 count only with layer normalisation (else pass 0); the hidden scale (31) and zero
// point (36) always count.
//
// Outputs: 0 output: int8 [batch, time, outputSize], laid out as the input; 1 the output state and
// 2 the cell state after the last step: type, shape and quantisation of inputs 18 and 19. The
// output has the bytes of the output state, whatever its own scale and zero point: so does TFLite,
// in whose files the output may have those of the concatenation with the other direction. The front
// end turns TFLite's variable tensors into the graph inputs and outputs behind 18, 19 and 1, 2;
// their initial content is the zero point (0 for the cell state).
namespace quantized_sequence_lstm {
inline constexpr uint32_t kInput = 0;
inline constexpr uint32_t kInputWeights = 1;      // 4 gates: input, forget, cell, output
inline constexpr uint32_t kRecurrentWeights = 5;  // 4 gates
inline constexpr uint32_t kPeepholeWeights = 9;   // 3 gates: input, forget, output
inline constexpr uint32_t kBias = 12;             // 4 gates
inline constexpr uint32_t kProjectionWeights = 16;
inline constexpr uint32_t kProjectionBias = 17;
inline constexpr uint32_t kOutputState = 18;
inline constexpr uint32_t kCellState = 19;
inline constexpr uint32_t kLayerNormWeights = 20;  // 4 gates
inline constexpr uint32_t kCellClip = 24;
inline constexpr uint32_t kProjectionClip = 25;
inline constexpr uint32_t kTimeMajor = 26;
inline constexpr uint32_t kIntermediateScales = 27;
inline constexpr uint32_t kIntermediateZeroPoints = 32;
inline constexpr uint32_t kInputCount = 37;
inline constexpr uint32_t kOutputCount = 3;
}  // namespace quantized_sequence_lstm

// One operation, prepared for any number of runs. Not thread-safe.
class QuantizedSequenceLstm {
 public:
  // All inputs must have data; the data of weights and biases must stay where they are.
  static Result<QuantizedSequenceLstm> make(const OperationContext& context);
  // `context` must be the same, except for the addresses of input, states and outputs.
  void run(const OperationContext& context);

 private:
  QuantizedSequenceLstm(IntegerLstm cell, const SequenceShape& shape, size_t inputSize,
                        size_t outputSize, size_t unitCount);

  IntegerLstm cell_;
  SequenceShape shape_;
  size_t inputSize_, outputSize_, unitCount_;
  std::vector<int8_t> output_;  // states while it runs
  std::vector<int16_t> state_;
};

}  // namespace hearth::ops
