// SPDX-License-Identifier: Apache-2.0
// Normalisations: a work group scales the elements of one row, group or image by what all of them
// have in common.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "rows.glsl"

// The values of NormKind in lowering/normalization.cc.
const uint kLength = 0;
const uint kMeanSquare = 1;
const uint kMoments = 2;
layout(constant_id = 0) const uint kKind = kMoments;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) readonly buffer ScaleBuffer { DATA scales[]; };
layout(binding = 2) readonly buffer OffsetBuffer { DATA offsets[]; };
layout(binding = 3) writeonly buffer OutputBuffer { DATA outputs[]; };

layout(push_constant) uniform Parameters {
  uint rows;
  uint innerRows;               // rows that follow each other by rowStep
  uint rowStep, outerStep;      // in elements
  uint rowLength;
  uint sizes[2];                // of the two inner loops over a row
  uint steps[3];                // of all three
  uint inner, channels;         // an element's channel is its place / inner % channels
  uint hasScales, hasOffsets;   // one for each channel, else those below
  float epsilon, scale, offset;
} p;

uint placeOf(uint first, uint index) {
  const uint last = index % p.sizes[1];
  const uint rest = index / p.sizes[1];
  return first + rest / p.sizes[0] * p.steps[0] + rest % p.sizes[0] * p.steps[1] +
         last * p.steps[2];
}

void main() {
  const uint row = rowOfGroup();
  if (row >= p.rows) return;
  const uint first = row / p.innerRows * p.outerStep + row % p.innerRows * p.rowStep;
  const uint lane = gl_LocalInvocationID.x;
  const float count = float(p.rowLength);

  float mean = 0.0;
  if (kKind == kMoments) {
    float sum = 0.0;
    for (uint i = lane; i < p.rowLength; i += ROW_GROUP) sum += float(inputs[placeOf(first, i)]);
    mean = sumOfGroup(sum) / count;
  }
  float squares = 0.0;
  for (uint i = lane; i < p.rowLength; i += ROW_GROUP) {
    const float value = float(inputs[placeOf(first, i)]) - mean;
    squares += value * value;
  }
  squares = sumOfGroup(squares);
  const float divisor = kKind == kLength ? max(sqrt(squares), p.epsilon)
                                         : sqrt(squares / count + p.epsilon);

  for (uint i = lane; i < p.rowLength; i += ROW_GROUP) {
    const uint place = placeOf(first, i);
    const uint channel = place / p.inner % p.channels;
    const float scale = p.hasScales != 0 ? float(scales[channel]) : p.scale;
    const float offset = p.hasOffsets != 0 ? float(offsets[channel]) : p.offset;
    outputs[place] = DATA((float(inputs[place]) - mean) / divisor * scale + offset);
  }
}
