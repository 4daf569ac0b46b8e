// SPDX-License-Identifier: Apache-2.0
// Local response normalisation: each element is scaled by the squares of those up to a radius away
// along one axis.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) writeonly buffer OutputBuffer { DATA outputs[]; };

layout(push_constant) uniform Parameters {
  uint count;
  uint rowLength;
  uint step;  // elements from one of a row to the next
  int radius;
  float bias, alpha, beta;
} p;

void main() {
  const uint element = rowElement();
  if (element >= p.count) return;
  const int place = int(element / p.step % p.rowLength);
  const int last = min(place + p.radius, int(p.rowLength) - 1);
  float squares = 0.0;
  for (int i = max(place - p.radius, 0); i <= last; ++i) {
    const float value = float(inputs[element + uint(i - place) * p.step]);
    squares += value * value;
  }
  outputs[element] =
      DATA(float(inputs[element]) * pow(p.bias + p.alpha * squares, -p.beta));
}
