// SPDX-License-Identifier: Apache-2.0
// Reductions of quantised numbers: an invocation folds all elements that make one element of the
// output. Sums count steps from the zero point; a table says which result they give.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "reduce.glsl"
#include "steps.glsl"

layout(local_size_x = ROW_GROUP) in;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) writeonly buffer OutputBuffer { DATA outputs[]; };

void main() {
  const uint element = rowElement();
  if (element >= p.count) return;
  const uint first = firstPlace(element);
  int sum = 0;
  int greatest = int(STORED(inputs[first]));
  int least = greatest;
  for (uint i = 0; i < p.foldedCount; ++i) {
    const int value = int(STORED(inputs[first + foldedPlace(i)]));
    sum += value - p.zeroPoint;
    greatest = max(greatest, value);
    least = min(least, value);
  }
  int result = kKind == kMaximum ? greatest : least;
  if (kKind == kMean || kKind == kSum) result = p.lowest + int(stepsUpTo(sum));
  outputs[element] = DATA(STORED(result));
}
