// SPDX-License-Identifier: Apache-2.0
// Softmax of quantised numbers along one axis: a work group computes one row. Powers of e are
// integers of 52 bits behind the point, and their sums are exact, so that the result is what double
// precision gives, in whatever order it adds. Results are multiples of 1/256.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) writeonly buffer OutputBuffer { DATA outputs[]; };
// For each distance from the greatest of the row its power: lower and upper word.
layout(binding = 2) readonly buffer PowerBuffer { uint powers[]; };

layout(push_constant) uniform Parameters {
  uint rows;
  uint rowLength;
  uint step;  // elements from one of a row to the next; rows lie side by side within a step
  int zeroPoint, lowest, highest;  // stored numbers of the output
} p;

shared int extremes[ROW_GROUP];
shared uvec3 sums[ROW_GROUP];

// Numbers of 96 bits, the lowest word first.
uvec3 add(uvec3 a, uvec3 b) {
  uint first, second, third;
  const uint low = uaddCarry(a.x, b.x, first);
  const uint middle = uaddCarry(a.y, b.y, second);
  return uvec3(low, uaddCarry(middle, first, third), a.z + b.z + second + third);
}
uvec3 times(uvec3 a, uint b) {
  uint low, middle, high, carryToMiddle, carryToHigh, carry, lost;
  umulExtended(a.x, b, carryToMiddle, low);
  umulExtended(a.y, b, carryToHigh, middle);
  umulExtended(a.z, b, lost, high);
  middle = uaddCarry(middle, carryToMiddle, carry);
  return uvec3(low, middle, high + carryToHigh + carry);
}
bool isAtMost(uvec3 a, uvec3 b) {
  if (a.z != b.z) return a.z < b.z;
  return a.y != b.y ? a.y < b.y : a.x <= b.x;
}

int storedAt(uint index) { return int(STORED(inputs[index])); }
uvec3 powerOf(uint distance) {
  return uvec3(powers[2 * distance], powers[2 * distance + 1], 0);
}

void main() {
  const uint row = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  if (row >= p.rows) return;
  const uint first = row / p.step * p.step * p.rowLength + row % p.step;
  const uint lane = gl_LocalInvocationID.x;

  int greatest = storedAt(first);
  for (uint i = lane; i < p.rowLength; i += ROW_GROUP)
    greatest = max(greatest, storedAt(first + i * p.step));
  extremes[lane] = greatest;
  barrier();
  for (uint width = ROW_GROUP / 2; width > 0; width /= 2) {
    if (lane < width) extremes[lane] = max(extremes[lane], extremes[lane + width]);
    barrier();
  }
  greatest = extremes[0];

  uvec3 sum = uvec3(0);
  for (uint i = lane; i < p.rowLength; i += ROW_GROUP)
    sum = add(sum, powerOf(uint(greatest - storedAt(first + i * p.step))));
  sums[lane] = sum;
  barrier();
  for (uint width = ROW_GROUP / 2; width > 0; width /= 2) {
    if (lane < width) sums[lane] = add(sums[lane], sums[lane + width]);
    barrier();
  }
  sum = sums[0];

  for (uint i = lane; i < p.rowLength; i += ROW_GROUP) {
    // The greatest result with result - 1/2 <= 256 * power / sum.
    const uvec3 scaled = times(powerOf(uint(greatest - storedAt(first + i * p.step))), 512);
    uint result = 0;
    for (uint bit = 256; bit > 0; bit /= 2)
      if (result + bit <= 256 && isAtMost(times(sum, 2 * (result + bit) - 1), scaled))
        result += bit;
    outputs[first + i * p.step] =
        DATA(STORED(clamp(int(result) + p.zeroPoint, p.lowest, p.highest)));
  }
}
