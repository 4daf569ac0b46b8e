// SPDX-License-Identifier: Apache-2.0
// float16 numbers to float32, and back.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

#if defined(DATA_F16)
#define OTHER float
#else
#define OTHER float16_t
#endif

layout(local_size_x = ROW_GROUP) in;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) writeonly buffer OutputBuffer { OTHER outputs[]; };

layout(push_constant) uniform Parameters { uint count; } p;

void main() {
  const uint element = rowElement();
  if (element < p.count) outputs[element] = OTHER(float(inputs[element]));
}
