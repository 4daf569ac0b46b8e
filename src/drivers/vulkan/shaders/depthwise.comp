// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution: an invocation computes one element of the output. Weights are
// [filter row, filter column, output channel]; `groupOutputs` is the depth multiplier.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "requantize.glsl"
#include "layer.glsl"

layout(local_size_x = ROW_GROUP) in;

void main() {
  const uint channels = p.groupInputs * p.groupOutputs;
  const uint element = rowElement();
  if (element >= p.batches * p.outputHeight * p.outputWidth * channels) return;
  const uint channel = element % channels;
  const uint x = element / channels % p.outputWidth;
  const uint y = element / channels / p.outputWidth % p.outputHeight;
  const uint batch = element / channels / p.outputWidth / p.outputHeight;
  const int top = int(y * p.strideHeight) - p.paddingTop;
  const int left = int(x * p.strideWidth) - p.paddingLeft;
  const uint base = batch * p.dataBatch + channel / p.groupOutputs * p.dataChannel;
  SUM sum = SUM(0);
  for (uint i = 0; i < p.filterHeight; ++i) {
    const int row = top + int(i * p.dilationHeight);
    if (row < 0 || row >= int(p.inputHeight)) continue;
    for (uint j = 0; j < p.filterWidth; ++j) {
      const int column = left + int(j * p.dilationWidth);
      if (column < 0 || column >= int(p.inputWidth)) continue;
      sum += dataAt(base + uint(row) * p.dataRow + uint(column) * p.dataColumn) *
             weightAt((i * p.filterWidth + j) * channels + channel);
    }
  }
  putSum(batch, y, x, channel, sum);
}
