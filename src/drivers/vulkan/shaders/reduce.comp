// SPDX-License-Identifier: Apache-2.0
// Reductions of real numbers: an invocation folds all elements that make one element of the output.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

// The values of ReduceKind in lowering/reduction.cc.
const uint kMean = 0;
const uint kSum = 1;
const uint kMaximum = 2;
const uint kMinimum = 3;
const uint kProduct = 4;
layout(constant_id = 0) const uint kKind = kMean;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) writeonly buffer OutputBuffer { DATA outputs[]; };

layout(push_constant) uniform Parameters {
  uint count;  // elements of the output
  uint keptSizes[4];
  uint keptSteps[4];
  uint foldedCount;  // elements of the input for each of the output
  uint foldedSizes[4];
  uint foldedSteps[4];
} p;

uint placeOf(uint index, uint sizes[4], uint steps[4]) {
  uint place = 0;
  for (int i = 3; i >= 0; --i) {
    place += index % sizes[i] * steps[i];
    index /= sizes[i];
  }
  return place;
}

float fold(float folded, float value) {
  switch (kKind) {
    // NaN is neither greater nor less.
    case kMaximum: return value > folded || folded != folded ? value : folded;
    case kMinimum: return value < folded || folded != folded ? value : folded;
    case kProduct: return folded * value;
    default: return folded + value;
  }
}

void main() {
  const uint element = rowElement();
  if (element >= p.count) return;
  const uint first = placeOf(element, p.keptSizes, p.keptSteps);
  // A long sum is one of short sums, so that it does not lose the digits of what comes late.
  const uint kPart = 64;
  const bool isSum = kKind == kMean || kKind == kSum;
  float total = float(inputs[first]);
  for (uint begin = 1; begin < p.foldedCount; begin += kPart) {
    const uint end = min(begin + kPart, p.foldedCount);
    float part = isSum ? 0.0 : total;
    for (uint i = begin; i < end; ++i)
      part = fold(part, float(inputs[first + placeOf(i, p.foldedSizes, p.foldedSteps)]));
    total = isSum ? total + part : part;
  }
  outputs[element] = DATA(kKind == kMean ? total / float(p.foldedCount) : total);
}
