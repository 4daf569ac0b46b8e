// SPDX-License-Identifier: Apache-2.0
// What layers with data, weights and bias share: their buffers, their parameters, and how a sum
// becomes an element of the output.
#if defined(WEIGHT_U8)
#define WEIGHT uint8_t
#elif defined(WEIGHT_I8)
#define WEIGHT int8_t
#else
#define WEIGHT DATA
#endif
#if defined(REAL)
#define BIAS DATA
#else
#define BIAS int
#endif
// Real data and weights of 8 bits.
#if defined(REAL) && defined(WEIGHT_I8)
#define HYBRID
#endif

layout(binding = 0) readonly buffer DataBuffer { DATA data[]; };
layout(binding = 1) readonly buffer WeightBuffer { WEIGHT weights[]; };
layout(binding = 2) readonly buffer BiasBuffer { BIAS bias[]; };
layout(binding = 3) writeonly buffer OutputBuffer { DATA outputs[]; };
#if defined(HYBRID)
layout(binding = 4) readonly buffer ScaleBuffer { float scales[]; };  // one for each channel
#elif !defined(REAL)
layout(binding = 4) readonly buffer FactorBuffer { uint factors[]; };  // three for each channel
#endif

layout(push_constant) uniform Parameters {
  uint outputHeight, outputWidth, batches;
  uint inputHeight, inputWidth;
  uint groupInputs, groupOutputs;
  uint filterHeight, filterWidth;
  uint strideHeight, strideWidth, dilationHeight, dilationWidth;
  int paddingTop, paddingLeft;
  uint dataBatch, dataRow, dataColumn, dataChannel;          // steps in elements
  uint outputBatch, outputRow, outputColumn, outputChannel;  // steps in elements
  uint hasBias;
  // Limits of the activation: float32, or stored numbers.
  int lowest, highest;
  int dataZeroPoint, weightZeroPoint, outputZeroPoint;
} p;

#if defined(REAL)
SUM dataAt(uint index) { return SUM(data[index]); }
#if defined(HYBRID)
SUM weightAt(uint index) { return SUM(int(weights[index]) - p.weightZeroPoint); }
#else
SUM weightAt(uint index) { return SUM(weights[index]); }
#endif
#else
SUM dataAt(uint index) { return int(STORED(data[index])) - p.dataZeroPoint; }
#if defined(WEIGHT_U8)
SUM weightAt(uint index) { return int(uint(weights[index])) - p.weightZeroPoint; }
#else
SUM weightAt(uint index) { return int(weights[index]) - p.weightZeroPoint; }
#endif
#endif

void putSum(uint batch, uint row, uint column, uint channel, SUM sum) {
  const uint place = batch * p.outputBatch + row * p.outputRow + column * p.outputColumn +
                     channel * p.outputChannel;
#if defined(HYBRID)
  sum *= scales[channel];
#endif
  if (p.hasBias != 0) sum += SUM(bias[channel]);
#if defined(REAL)
  outputs[place] = DATA(clampReal(sum, intBitsToFloat(p.lowest), intBitsToFloat(p.highest)));
#else
  const Factor factor = Factor(factors[3 * channel], factors[3 * channel + 1],
                               int(factors[3 * channel + 2]));
  outputs[place] = DATA(STORED(requantize(sum, factor, p.outputZeroPoint, p.lowest, p.highest)));
#endif
}
