// SPDX-License-Identifier: Apache-2.0
// Rows of elements of any type, taken by their numbers. A number outside leaves its row of the
// output unwritten and is a fault, which fails the execution.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) readonly buffer IndexBuffer { int indices[]; };
layout(binding = 2) writeonly buffer OutputBuffer { DATA outputs[]; };
layout(binding = 3) writeonly buffer FaultBuffer { uint fault; };

layout(push_constant) uniform Parameters {
  uint count;       // elements of the output
  uint rowLength;
  uint taken;       // rows that are taken of each block
  uint blockRows;   // rows of each block of the input
  uint outer;       // neighbouring blocks that have the same numbers
  uint indexWords;  // of each number: 1, or 2 with the lower one first
} p;

void main() {
  const uint element = rowElement();
  if (element >= p.count) return;
  const uint row = element / p.rowLength;
  const uint block = row / p.taken;
  const uint word = (block / p.outer * p.taken + row % p.taken) * p.indexWords;
  const int number = indices[word];
  const bool isInside = number >= 0 && uint(number) < p.blockRows &&
                        (p.indexWords == 1 || indices[word + 1] == 0);
  if (isInside)
    outputs[element] =
        inputs[(block * p.blockRows + uint(number)) * p.rowLength + element % p.rowLength];
  else
    fault = 1;
}
