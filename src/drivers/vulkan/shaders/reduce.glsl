// SPDX-License-Identifier: Apache-2.0
// What reductions share: which elements make one element of the output.
layout(push_constant) uniform Parameters {
  uint count;  // elements of the output
  uint keptSizes[4];
  uint keptSteps[4];
  uint foldedCount;  // elements of the input for each of the output
  uint foldedSizes[4];
  uint foldedSteps[4];
  int zeroPoint;  // of quantised inputs
  int lowest;     // the least stored number of the output
} p;

// The values of ReduceKind in lowering/reduction.cc.
const uint kMean = 0;
const uint kSum = 1;
const uint kMaximum = 2;
const uint kMinimum = 3;
const uint kProduct = 4;
layout(constant_id = 0) const uint kKind = kMean;

uint placeOf(uint index, uint sizes[4], uint steps[4]) {
  uint place = 0;
  for (int i = 3; i >= 0; --i) {
    place += index % sizes[i] * steps[i];
    index /= sizes[i];
  }
  return place;
}

uint firstPlace(uint element) { return placeOf(element, p.keptSizes, p.keptSteps); }
uint foldedPlace(uint index) { return placeOf(index, p.foldedSizes, p.foldedSteps); }
