// SPDX-License-Identifier: Apache-2.0
// Moves elements of any type from one strided place to another; a step may be 0 or negative.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) writeonly buffer OutputBuffer { DATA outputs[]; };

layout(push_constant) uniform Parameters {
  uint count;
  uint dimensions[6];
  int inputSteps[6];
  int outputSteps[6];
  int inputFirst, outputFirst;
} p;

void main() {
  uint element = rowElement();
  if (element >= p.count) return;
  int from = p.inputFirst;
  int to = p.outputFirst;
  for (int i = 5; i >= 0; --i) {
    const int index = int(element % p.dimensions[i]);
    element /= p.dimensions[i];
    from += index * p.inputSteps[i];
    to += index * p.outputSteps[i];
  }
  outputs[to] = inputs[from];
}
