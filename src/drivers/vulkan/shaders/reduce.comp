// SPDX-License-Identifier: Apache-2.0
// Reductions of real numbers: an invocation folds all elements that make one element of the output.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "reduce.glsl"

layout(local_size_x = ROW_GROUP) in;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) writeonly buffer OutputBuffer { DATA outputs[]; };

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
  const uint first = firstPlace(element);
  // A long sum is one of short sums, so that it does not lose the digits of what comes late.
  const uint kPart = 64;
  const bool isSum = kKind == kMean || kKind == kSum;
  float total = float(inputs[first]);
  for (uint begin = 1; begin < p.foldedCount; begin += kPart) {
    const uint end = min(begin + kPart, p.foldedCount);
    float part = isSum ? 0.0 : total;
    for (uint i = begin; i < end; ++i)
      part = fold(part, float(inputs[first + foldedPlace(i)]));
    total = isSum ? total + part : part;
  }
  outputs[element] = DATA(kKind == kMean ? total / float(p.foldedCount) : total);
}
