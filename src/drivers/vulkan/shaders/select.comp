// SPDX-License-Identifier: Apache-2.0
// Takes each element from one of two inputs of any type. Shapes are padded in front to rank 6; a
// step of 0 repeats an element.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

layout(binding = 0) readonly buffer ConditionBuffer { uint8_t conditions[]; };
layout(binding = 1) readonly buffer YesBuffer { DATA yes[]; };
layout(binding = 2) readonly buffer NoBuffer { DATA no[]; };
layout(binding = 3) writeonly buffer OutputBuffer { DATA outputs[]; };

layout(push_constant) uniform Parameters {
  uint count;
  uint dimensions[6];
  uint conditionSteps[6];
  uint yesSteps[6];
  uint noSteps[6];
} p;

void main() {
  const uint element = rowElement();
  if (element >= p.count) return;
  uint rest = element;
  uint condition = 0;
  uint first = 0;
  uint second = 0;
  for (int i = 5; i >= 0; --i) {
    const uint index = rest % p.dimensions[i];
    rest /= p.dimensions[i];
    condition += index * p.conditionSteps[i];
    first += index * p.yesSteps[i];
    second += index * p.noSteps[i];
  }
  if (uint(conditions[condition]) != 0)
    outputs[element] = yes[first];
  else
    outputs[element] = no[second];
}
