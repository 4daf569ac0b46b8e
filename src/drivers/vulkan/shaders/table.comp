// SPDX-License-Identifier: Apache-2.0
// Functions of one or two 8-bit numbers, looked up in a table of all results: 256 for each number
// of the left input, which is all there is where the function has one input only.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "broadcast.glsl"

layout(local_size_x = ROW_GROUP) in;

layout(constant_id = 0) const uint kInputs = 1;

layout(binding = 0) readonly buffer LeftBuffer { uint8_t lefts[]; };
layout(binding = 1) readonly buffer RightBuffer { uint8_t rights[]; };
layout(binding = 2) readonly buffer TableBuffer { uint8_t table[]; };
layout(binding = 3) writeonly buffer OutputBuffer { uint8_t outputs[]; };

void main() {
  const uint element = rowElement();
  if (element >= p.count) return;
  uint left, right;
  operandsOf(element, left, right);
  uint place = uint(lefts[left]);
  if (kInputs == 2) place = place * 256 + uint(rights[right]);
  outputs[element] = table[place];
}
