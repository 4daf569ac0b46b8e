// SPDX-License-Identifier: Apache-2.0
// QUANTIZE of real numbers to 8 bits, with a sign or without.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "steps.glsl"

layout(local_size_x = ROW_GROUP) in;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) writeonly buffer OutputBuffer { uint8_t outputs[]; };

layout(push_constant) uniform Parameters {
  uint count;
  int lowest;     // the least stored number
  int zeroPoint;  // what NaN becomes
} p;

void main() {
  const uint element = rowElement();
  if (element >= p.count) return;
  const float value = float(inputs[element]);
  const int stored = value != value ? p.zeroPoint : p.lowest + int(stepsUpTo(value));
  outputs[element] = uint8_t(uint(stored) & 0xffu);
}
