// SPDX-License-Identifier: Apache-2.0
// Shaders of which a work group computes one row: which row it is, and sums over its invocations.
layout(local_size_x = ROW_GROUP) in;

shared float parts[ROW_GROUP];

// A dispatch of more rows than x may have goes on in y (LoweringContext::addRows()).
uint rowOfGroup() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }

// The sum of the values of all invocations of the work group, for each of them.
float sumOfGroup(float value) {
  const uint lane = gl_LocalInvocationID.x;
  barrier();
  parts[lane] = value;
  barrier();
  for (uint width = ROW_GROUP / 2; width > 0; width /= 2) {
    if (lane < width) parts[lane] += parts[lane + width];
    barrier();
  }
  return parts[0];
}
