// SPDX-License-Identifier: Apache-2.0
// Writes a block of elements of any type into a tensor, at a place that the indices say. A begin
// that lies too far out is moved until the block fits.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) readonly buffer BeginBuffer { int begins[]; };
layout(binding = 2) writeonly buffer OutputBuffer { DATA outputs[]; };

layout(push_constant) uniform Parameters {
  uint count;          // elements of the block
  uint rank;
  uint beginWords;     // of each begin: 1, or 2 with the lower one first
  uint dimensions[6];  // of the block
  uint outputSteps[6];
  int rooms[6];        // the greatest begin of each dimension
} p;

int beginOf(uint dimension) {
  const int low = begins[dimension * p.beginWords];
  if (p.beginWords == 1) return clamp(low, 0, p.rooms[dimension]);
  const int high = begins[dimension * p.beginWords + 1];
  if (high < 0) return 0;
  if (high > 0 || low < 0) return p.rooms[dimension];
  return min(low, p.rooms[dimension]);
}

void main() {
  const uint element = rowElement();
  if (element >= p.count) return;
  uint rest = element;
  uint place = 0;
  for (int i = int(p.rank) - 1; i >= 0; --i) {
    place += (rest % p.dimensions[i] + uint(beginOf(uint(i)))) * p.outputSteps[i];
    rest /= p.dimensions[i];
  }
  outputs[place] = inputs[element];
}
