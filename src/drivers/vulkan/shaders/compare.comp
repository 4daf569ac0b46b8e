// SPDX-License-Identifier: Apache-2.0
// Comparisons of two inputs, element by element.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "broadcast.glsl"

layout(local_size_x = ROW_GROUP) in;

// The values of CompareKind in lowering/choices.cc.
layout(constant_id = 0) const uint kKind = 0;

layout(binding = 0) readonly buffer LeftBuffer { DATA lefts[]; };
layout(binding = 1) readonly buffer RightBuffer { DATA rights[]; };
layout(binding = 2) writeonly buffer OutputBuffer { uint8_t outputs[]; };

bool compare(SUM left, SUM right) {
  switch (kKind) {
    case 0: return left == right;
    case 1: return left != right;
    case 2: return left < right;
    case 3: return left <= right;
    case 4: return left > right;
    default: return left >= right;
  }
}

void main() {
  const uint element = rowElement();
  if (element >= p.count) return;
  uint left, right;
  operandsOf(element, left, right);
  outputs[element] = uint8_t(compare(SUM(lefts[left]), SUM(rights[right])) ? 1 : 0);
}
