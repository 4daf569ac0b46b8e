// SPDX-License-Identifier: Apache-2.0
// CUMSUM: an invocation adds up one row.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

// Bits: whether the element itself is left out, and whether sums begin at the end.
layout(constant_id = 0) const uint kForm = 0;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) writeonly buffer OutputBuffer { DATA outputs[]; };

layout(push_constant) uniform Parameters {
  uint rows;
  uint rowLength;
  uint step;  // elements from one of a row to the next; rows lie side by side within a step
} p;

void main() {
  const uint row = rowElement();
  if (row >= p.rows) return;
  const uint first = row / p.step * p.step * p.rowLength + row % p.step;
  SUM total = SUM(0);
  for (uint i = 0; i < p.rowLength; ++i) {
    const uint place = (kForm & 2) != 0 ? p.rowLength - 1 - i : i;
    const SUM next = total + SUM(inputs[first + place * p.step]);
    outputs[first + place * p.step] = DATA((kForm & 1) != 0 ? total : next);
    total = next;
  }
}
