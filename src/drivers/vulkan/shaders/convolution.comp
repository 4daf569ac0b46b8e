// SPDX-License-Identifier: Apache-2.0
// Convolution and fully connected layers as a product of matrices: rows are places of the output,
// columns its channels, and the inner dimension runs over the window and the channels of a group.
// A work group computes kTile x kTile elements, an invocation kPart x kPart of them: each element
// is the same sum, in the same order, whatever kPart is. Weights are [output channel, filter row,
// filter column, input channel of the group].
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "requantize.glsl"
#include "layer.glsl"

layout(local_size_x = 8, local_size_y = 8) in;

// Of kParts in plan/products.h.
layout(constant_id = 0) const uint kChoice = 0;
const uint kPart = kChoice == 0 ? 4 : kChoice == 1 ? 2 : 8;
const uint kTile = 8 * kPart;
const uint kDepth = 16;
const uint kPitch = kTile + 1;

shared SUM dataTile[kDepth * kPitch];
shared SUM weightTile[kDepth * kPitch];

void main() {
  const uint rows = p.batches * p.outputHeight * p.outputWidth;
  const uint depth = p.filterHeight * p.filterWidth * p.groupInputs;
  const uint firstRow = gl_WorkGroupID.x * kTile;
  const uint firstColumn = gl_WorkGroupID.y * kTile;
  const uint group = gl_WorkGroupID.z;

  // What this invocation loads into the tiles: one row of each, at some of the depths.
  const uint lane = gl_LocalInvocationIndex % kTile;
  const uint firstLevel = gl_LocalInvocationIndex / kTile;
  const uint loadedRow = firstRow + lane;
  const uint loadedColumn = firstColumn + lane;
  const uint place = loadedRow % (p.outputHeight * p.outputWidth);
  const uint batch = loadedRow / (p.outputHeight * p.outputWidth);
  const int top = int(place / p.outputWidth * p.strideHeight) - p.paddingTop;
  const int left = int(place % p.outputWidth * p.strideWidth) - p.paddingLeft;
  const uint dataBase = batch * p.dataBatch + group * p.groupInputs * p.dataChannel;
  const uint weightBase = (group * p.groupOutputs + loadedColumn) * depth;

  SUM sums[kPart * kPart];
  for (uint i = 0; i < kPart * kPart; ++i) sums[i] = SUM(0);

  for (uint first = 0; first < depth; first += kDepth) {
    for (uint level = firstLevel; level < kDepth; level += 64 / kTile) {
      const uint k = first + level;
      SUM value = SUM(0);
      SUM weight = SUM(0);
      if (k < depth) {
        if (loadedColumn < p.groupOutputs) weight = weightAt(weightBase + k);
        const uint tap = k / p.groupInputs;
        const int row = top + int(tap / p.filterWidth * p.dilationHeight);
        const int column = left + int(tap % p.filterWidth * p.dilationWidth);
        if (loadedRow < rows && row >= 0 && row < int(p.inputHeight) && column >= 0 &&
            column < int(p.inputWidth))
          value = dataAt(dataBase + uint(row) * p.dataRow + uint(column) * p.dataColumn +
                         k % p.groupInputs * p.dataChannel);
      }
      dataTile[level * kPitch + lane] = value;
      weightTile[level * kPitch + lane] = weight;
    }
    barrier();
    for (uint level = 0; level < kDepth; ++level) {
      SUM values[kPart];
      for (uint i = 0; i < kPart; ++i)
        values[i] = dataTile[level * kPitch + gl_LocalInvocationID.x + i * 8];
      for (uint j = 0; j < kPart; ++j) {
        const SUM weight = weightTile[level * kPitch + gl_LocalInvocationID.y + j * 8];
        for (uint i = 0; i < kPart; ++i) sums[i * kPart + j] += values[i] * weight;
      }
    }
    barrier();
  }

  for (uint i = 0; i < kPart; ++i) {
    const uint row = firstRow + gl_LocalInvocationID.x + i * 8;
    if (row >= rows) continue;
    const uint at = row % (p.outputHeight * p.outputWidth);
    for (uint j = 0; j < kPart; ++j) {
      const uint column = firstColumn + gl_LocalInvocationID.y + j * 8;
      if (column < p.groupOutputs)
        putSum(row / (p.outputHeight * p.outputWidth), at / p.outputWidth, at % p.outputWidth,
               group * p.groupOutputs + column, sums[i * kPart + j]);
    }
  }
}
