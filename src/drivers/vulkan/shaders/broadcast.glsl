// SPDX-License-Identifier: Apache-2.0
// Element-wise operations of two inputs: where the elements of both lie that make an element of the
// output. Shapes are padded in front to rank 6; a step of 0 repeats an element.
layout(push_constant) uniform Parameters {
  uint count;  // elements of the output
  uint dimensions[6];
  uint leftSteps[6];
  uint rightSteps[6];
  int lowest, highest;  // limits of the fused activation
} p;

void operandsOf(uint element, out uint left, out uint right) {
  left = 0;
  right = 0;
  for (int i = 5; i >= 0; --i) {
    const uint index = element % p.dimensions[i];
    element /= p.dimensions[i];
    left += index * p.leftSteps[i];
    right += index * p.rightSteps[i];
  }
}
