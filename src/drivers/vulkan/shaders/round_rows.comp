// SPDX-License-Identifier: Apache-2.0
// What a hybrid layer does to its data: a work group rounds one row to 256 steps from its least to
// its greatest value, 0 included. A row with an infinity or NaN stays as it is.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) writeonly buffer OutputBuffer { DATA outputs[]; };

layout(push_constant) uniform Parameters {
  uint rows;
  uint rowLength;
} p;

shared float lows[ROW_GROUP];
shared float highs[ROW_GROUP];
shared uint unbounded;

void main() {
  const uint row = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  if (row >= p.rows) return;
  const uint first = row * p.rowLength;
  const uint lane = gl_LocalInvocationID.x;
  if (lane == 0) unbounded = 0;
  barrier();
  float least = 0.0;
  float greatest = 0.0;
  uint isUnbounded = 0;
  for (uint i = lane; i < p.rowLength; i += ROW_GROUP) {
    const float value = float(inputs[first + i]);
    if (isinf(value) || isnan(value)) isUnbounded = 1;
    least = min(least, value);
    greatest = max(greatest, value);
  }
  lows[lane] = least;
  highs[lane] = greatest;
  if (isUnbounded != 0) atomicOr(unbounded, 1u);
  barrier();
  for (uint width = ROW_GROUP / 2; width > 0; width /= 2) {
    if (lane < width) {
      lows[lane] = min(lows[lane], lows[lane + width]);
      highs[lane] = max(highs[lane], highs[lane + width]);
    }
    barrier();
  }
  const float step = (highs[0] - lows[0]) / 255.0;
  // A denormal step keeps the row, too.
  const bool isKept = unbounded != 0 || !(step >= 1.17549435e-38) || isinf(step);
  const float zeroPoint = roundEven(-128.0 - lows[0] / step);
  for (uint i = lane; i < p.rowLength; i += ROW_GROUP) {
    const float value = float(inputs[first + i]);
    const float rounded = clamp(roundEven(value / step) + zeroPoint, -128.0, 127.0);
    outputs[first + i] = DATA(isKept ? value : (rounded - zeroPoint) * step);
  }
}
