// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm along one axis: a work group computes one row.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

layout(constant_id = 0) const uint kIsLogarithm = 0;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) writeonly buffer OutputBuffer { DATA outputs[]; };

layout(push_constant) uniform Parameters {
  uint rows;
  uint rowLength;
  uint step;  // elements from one of a row to the next; rows lie side by side within a step
  float beta;
} p;

shared float parts[ROW_GROUP];

void main() {
  const uint row = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  if (row >= p.rows) return;
  const uint first = row / p.step * p.step * p.rowLength + row % p.step;
  const uint lane = gl_LocalInvocationID.x;

  float greatest = float(inputs[first]);
  for (uint i = lane; i < p.rowLength; i += ROW_GROUP)
    greatest = max(greatest, float(inputs[first + i * p.step]));
  parts[lane] = greatest;
  barrier();
  for (uint width = ROW_GROUP / 2; width > 0; width /= 2) {
    if (lane < width) parts[lane] = max(parts[lane], parts[lane + width]);
    barrier();
  }
  greatest = parts[0];
  barrier();

  float sum = 0.0;
  for (uint i = lane; i < p.rowLength; i += ROW_GROUP)
    sum += exp((float(inputs[first + i * p.step]) - greatest) * p.beta);
  parts[lane] = sum;
  barrier();
  for (uint width = ROW_GROUP / 2; width > 0; width /= 2) {
    if (lane < width) parts[lane] += parts[lane + width];
    barrier();
  }
  sum = parts[0];

  for (uint i = lane; i < p.rowLength; i += ROW_GROUP) {
    const float scaled = (float(inputs[first + i * p.step]) - greatest) * p.beta;
    outputs[first + i * p.step] = DATA(kIsLogarithm != 0 ? scaled - log(sum) : exp(scaled) / sum);
  }
}
