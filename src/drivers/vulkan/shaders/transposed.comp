// SPDX-License-Identifier: Apache-2.0
// Transposed convolution: an invocation computes one element of the output, of the elements of the
// input whose window covers it. Weights are [output channel, filter row, filter column, channel].
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "requantize.glsl"
#include "layer.glsl"

layout(local_size_x = ROW_GROUP) in;

void main() {
  const uint element = rowElement();
  if (element >= p.batches * p.outputHeight * p.outputWidth * p.groupOutputs) return;
  const uint channel = element % p.groupOutputs;
  const uint x = element / p.groupOutputs % p.outputWidth;
  const uint y = element / p.groupOutputs / p.outputWidth % p.outputHeight;
  const uint batch = element / p.groupOutputs / p.outputWidth / p.outputHeight;
  SUM sum = SUM(0);
  for (uint filterRow = 0; filterRow < p.filterHeight; ++filterRow) {
    const int down = int(y) + p.paddingTop - int(filterRow);
    if (down < 0 || down % int(p.strideHeight) != 0) continue;
    const uint row = uint(down) / p.strideHeight;
    if (row >= p.inputHeight) continue;
    for (uint filterColumn = 0; filterColumn < p.filterWidth; ++filterColumn) {
      const int across = int(x) + p.paddingLeft - int(filterColumn);
      if (across < 0 || across % int(p.strideWidth) != 0) continue;
      const uint column = uint(across) / p.strideWidth;
      if (column >= p.inputWidth) continue;
      const uint from = batch * p.dataBatch + row * p.dataRow + column * p.dataColumn;
      const uint tap =
          ((channel * p.filterHeight + filterRow) * p.filterWidth + filterColumn) * p.groupInputs;
      for (uint i = 0; i < p.groupInputs; ++i)
        sum += dataAt(from + i * p.dataChannel) * weightAt(tap + i);
    }
  }
  putSum(batch, y, x, channel, sum);
}
