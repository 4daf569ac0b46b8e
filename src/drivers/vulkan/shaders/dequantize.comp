// SPDX-License-Identifier: Apache-2.0
// DEQUANTIZE of 8-bit numbers: the real number of each of them is in a table.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

layout(binding = 0) readonly buffer InputBuffer { uint8_t inputs[]; };
layout(binding = 1) writeonly buffer OutputBuffer { DATA outputs[]; };
layout(binding = 2) readonly buffer TableBuffer { DATA table[]; };

layout(push_constant) uniform Parameters { uint count; } p;

void main() {
  const uint element = rowElement();
  if (element < p.count) outputs[element] = table[uint(inputs[element])];
}
