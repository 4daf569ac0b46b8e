// SPDX-License-Identifier: Apache-2.0
// Rows of quantised numbers divided by their length, with results of the scale 1/128. A work group
// computes one row. Squares are exact, and so is the comparison that rounds.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) writeonly buffer OutputBuffer { DATA outputs[]; };

layout(push_constant) uniform Parameters {
  uint rows;
  uint rowLength;  // at most 66,051, so that the sum of squares fits
  uint step;       // elements from one of a row to the next; rows lie side by side within a step
  int zeroPoint;
  int outputZeroPoint, lowest, highest;  // stored numbers of the output
} p;

shared uint parts[ROW_GROUP];

int numberAt(uint index) { return int(STORED(inputs[index])) - p.zeroPoint; }

void main() {
  const uint row = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  if (row >= p.rows) return;
  const uint first = row / p.step * p.step * p.rowLength + row % p.step;
  const uint lane = gl_LocalInvocationID.x;
  uint squares = 0;
  for (uint i = lane; i < p.rowLength; i += ROW_GROUP) {
    const int number = numberAt(first + i * p.step);
    squares += uint(number * number);
  }
  parts[lane] = squares;
  barrier();
  for (uint width = ROW_GROUP / 2; width > 0; width /= 2) {
    if (lane < width) parts[lane] += parts[lane + width];
    barrier();
  }
  squares = parts[0];

  for (uint i = lane; i < p.rowLength; i += ROW_GROUP) {
    const int number = numberAt(first + i * p.step);
    // The greatest result with result - 1/2 <= 128 * |number| / length, squared:
    // (2 * result - 1)^2 * squares <= (256 * number)^2.
    const uint bound = uint(number * number) << 16;
    int result = 0;
    for (int bit = 128; bit > 0; bit /= 2) {
      const uint odd = uint(2 * (result + bit) - 1);
      uint high, low;
      umulExtended(odd * odd, squares, high, low);
      if (squares != 0 && result + bit <= 128 && high == 0 && low <= bound) result += bit;
    }
    outputs[first + i * p.step] = DATA(STORED(
        clamp((number < 0 ? -result : result) + p.outputZeroPoint, p.lowest, p.highest)));
  }
}
