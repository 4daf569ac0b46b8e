// SPDX-License-Identifier: Apache-2.0
// ARGMAX and ARGMIN: an invocation finds the place of the greatest or least element of one row. The
// first of equal elements wins; NaN is neither greater nor less.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

layout(constant_id = 0) const uint kIsLeast = 0;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
// Places of 32 bits, or of 64 as two words.
layout(binding = 1) writeonly buffer OutputBuffer { uint outputs[]; };

layout(push_constant) uniform Parameters {
  uint rows;
  uint rowLength;
  uint step;  // elements from one of a row to the next; rows lie side by side within a step
  uint words;  // of a place: 1 or 2
} p;

void main() {
  const uint row = rowElement();
  if (row >= p.rows) return;
  const uint first = row / p.step * p.step * p.rowLength + row % p.step;
  uint best = 0;
  SUM bestValue = SUM(inputs[first]);
  for (uint i = 1; i < p.rowLength; ++i) {
    const SUM value = SUM(inputs[first + i * p.step]);
    if (kIsLeast != 0 ? value < bestValue : value > bestValue) {
      best = i;
      bestValue = value;
    }
  }
  outputs[row * p.words] = best;
  if (p.words == 2) outputs[row * 2 + 1] = 0;
}
