// SPDX-License-Identifier: Apache-2.0
// Pools: an invocation computes one element of the output. Elements outside the image do not take
// part.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

// The values of PoolKind in lowering/pooling.cc.
const uint kAverage = 0;
const uint kMaximum = 1;
const uint kRootMeanSquare = 2;
layout(constant_id = 0) const uint kKind = kAverage;

layout(binding = 0) readonly buffer DataBuffer { DATA data[]; };
layout(binding = 1) writeonly buffer OutputBuffer { DATA outputs[]; };

layout(push_constant) uniform Parameters {
  uint batches, outputHeight, outputWidth, channels;
  uint inputHeight, inputWidth;
  uint filterHeight, filterWidth, strideHeight, strideWidth;
  int paddingTop, paddingLeft;
  uint dataBatch, dataRow, dataColumn, dataChannel;          // steps in elements
  uint outputBatch, outputRow, outputColumn, outputChannel;  // steps in elements
  int lowest, highest;
} p;

#if defined(REAL)
SUM valueAt(uint index) { return SUM(data[index]); }
#else
SUM valueAt(uint index) { return int(STORED(data[index])); }
// The mean of stored numbers, rounded half away from 0 whatever the zero point.
int meanOf(int sum, int count) {
  const int magnitude = (abs(sum) + count / 2) / count;
  return sum < 0 ? -magnitude : magnitude;
}
#endif

void main() {
  const uint element = rowElement();
  if (element >= p.batches * p.outputHeight * p.outputWidth * p.channels) return;
  const uint channel = element % p.channels;
  const uint x = element / p.channels % p.outputWidth;
  const uint y = element / p.channels / p.outputWidth % p.outputHeight;
  const uint batch = element / p.channels / p.outputWidth / p.outputHeight;
  const int top = int(y * p.strideHeight) - p.paddingTop;
  const int left = int(x * p.strideWidth) - p.paddingLeft;
  const int rowBegin = max(top, 0);
  const int rowEnd = min(top + int(p.filterHeight), int(p.inputHeight));
  const int columnBegin = max(left, 0);
  const int columnEnd = min(left + int(p.filterWidth), int(p.inputWidth));
  SUM sum = SUM(0);
  SUM greatest = SUM(0);
  bool isFirst = true;
  for (int row = rowBegin; row < rowEnd; ++row) {
    for (int column = columnBegin; column < columnEnd; ++column) {
      const SUM value = valueAt(batch * p.dataBatch + uint(row) * p.dataRow +
                                uint(column) * p.dataColumn + channel * p.dataChannel);
      sum += kKind == kRootMeanSquare ? value * value : value;
      // NaN is the greatest.
      if (isFirst || value > greatest || value != value) greatest = value;
      isFirst = false;
    }
  }
  const int count = (rowEnd - rowBegin) * (columnEnd - columnBegin);
  const uint place =
      batch * p.outputBatch + y * p.outputRow + x * p.outputColumn + channel * p.outputChannel;
#if defined(REAL)
  float result = kKind == kMaximum ? greatest : sum / float(count);
  if (kKind == kRootMeanSquare) result = sqrt(result);
  outputs[place] = DATA(clampReal(result, intBitsToFloat(p.lowest), intBitsToFloat(p.highest)));
#else
  const int result = kKind == kMaximum ? greatest : meanOf(sum, count);
  outputs[place] = DATA(STORED(clamp(result, p.lowest, p.highest)));
#endif
}
