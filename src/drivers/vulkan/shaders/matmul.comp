// SPDX-License-Identifier: Apache-2.0
// Products of matrices that lie anywhere in their tensors: steps say where. A work group computes
// kTile x kTile elements of one product, an invocation kPart x kPart of them: each element is the
// same sum, in the same order, whatever kPart is.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "requantize.glsl"

layout(local_size_x = 8, local_size_y = 8) in;

// Of kParts in plan/products.h.
layout(constant_id = 0) const uint kChoice = 0;
const uint kPart = kChoice == 0 ? 4 : kChoice == 1 ? 2 : 8;
const uint kTile = 8 * kPart;
const uint kDepth = 16;
const uint kPitch = kTile + 1;

layout(binding = 0) readonly buffer LeftBuffer { DATA lefts[]; };
layout(binding = 1) readonly buffer RightBuffer { DATA rights[]; };
layout(binding = 2) writeonly buffer OutputBuffer { DATA outputs[]; };
layout(binding = 3) readonly buffer FactorBuffer { uint factor[]; };  // three words, or a float32

layout(push_constant) uniform Parameters {
  uint rows, depth, columns;
  uint leftRow, leftDepth, rightDepth, rightColumn, outputRow, outputColumn;  // steps in elements
  uint sizes[2];  // of the inner two of three loops over products
  uint leftSteps[3], rightSteps[3], outputSteps[3];
  int leftZeroPoint, rightZeroPoint, outputZeroPoint, lowest, highest;
} p;

shared SUM leftTile[kDepth * kPitch];
shared SUM rightTile[kDepth * kPitch];

#if defined(REAL)
SUM leftAt(uint index) { return SUM(lefts[index]); }
SUM rightAt(uint index) { return SUM(rights[index]); }
SUM resultOf(SUM sum) { return sum * uintBitsToFloat(factor[0]); }
#define STORED SUM
#else
SUM leftAt(uint index) { return int(STORED(lefts[index])) - p.leftZeroPoint; }
SUM rightAt(uint index) { return int(STORED(rights[index])) - p.rightZeroPoint; }
SUM resultOf(SUM sum) {
  const Factor scale = Factor(factor[0], factor[1], int(factor[2]));
  return requantize(sum, scale, p.outputZeroPoint, p.lowest, p.highest);
}
#endif

uint firstOf(uint steps[3]) {
  const uint product = gl_WorkGroupID.z;
  const uint rest = product / p.sizes[1];
  return rest / p.sizes[0] * steps[0] + rest % p.sizes[0] * steps[1] +
         product % p.sizes[1] * steps[2];
}

void main() {
  const uint firstRow = gl_WorkGroupID.x * kTile;
  const uint firstColumn = gl_WorkGroupID.y * kTile;
  // What this invocation loads into the tiles: one row of each, at some of the depths.
  const uint lane = gl_LocalInvocationIndex % kTile;
  const uint firstLevel = gl_LocalInvocationIndex / kTile;
  const uint left = firstOf(p.leftSteps) + (firstRow + lane) * p.leftRow;
  const uint right = firstOf(p.rightSteps) + (firstColumn + lane) * p.rightColumn;

  SUM sums[kPart * kPart];
  for (uint i = 0; i < kPart * kPart; ++i) sums[i] = SUM(0);

  for (uint first = 0; first < p.depth; first += kDepth) {
    for (uint level = firstLevel; level < kDepth; level += 64 / kTile) {
      const uint k = first + level;
      const bool isInside = k < p.depth;
      leftTile[level * kPitch + lane] =
          isInside && firstRow + lane < p.rows ? leftAt(left + k * p.leftDepth) : SUM(0);
      rightTile[level * kPitch + lane] =
          isInside && firstColumn + lane < p.columns ? rightAt(right + k * p.rightDepth) : SUM(0);
    }
    barrier();
    for (uint level = 0; level < kDepth; ++level) {
      SUM values[kPart];
      for (uint i = 0; i < kPart; ++i)
        values[i] = leftTile[level * kPitch + gl_LocalInvocationID.x + i * 8];
      for (uint j = 0; j < kPart; ++j) {
        const SUM other = rightTile[level * kPitch + gl_LocalInvocationID.y + j * 8];
        for (uint i = 0; i < kPart; ++i) sums[i * kPart + j] += values[i] * other;
      }
    }
    barrier();
  }

  const uint base = firstOf(p.outputSteps);
  for (uint i = 0; i < kPart; ++i) {
    const uint row = firstRow + gl_LocalInvocationID.x + i * 8;
    for (uint j = 0; j < kPart; ++j) {
      const uint column = firstColumn + gl_LocalInvocationID.y + j * 8;
      if (row < p.rows && column < p.columns)
        outputs[base + row * p.outputRow + column * p.outputColumn] =
            DATA(STORED(resultOf(sums[i * kPart + j])));
    }
  }
}
